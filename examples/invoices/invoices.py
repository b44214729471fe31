"""Charge invoices, each once: the operation. See README.md beside this file."""

from functools import cache
from pathlib import Path

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from provider import PaymentProvider


@cache
def provider() -> PaymentProvider:
    """Opened at the first charge: importing this module does nothing."""
    return PaymentProvider(Path("provider.sqlite"))


def charge(job: Job, attempt: Attempt) -> object:
    """One job is one invoice: `{"job_id": "inv-001", "customer": "acme", "cents": 1250}`."""
    cents, customer = job.payload.get("cents"), job.payload.get("customer")
    if not isinstance(cents, int) or cents <= 0:
        raise PermanentError("invalid_invoice", "cents: expected a whole number above 0")  # before any effect
    if not isinstance(customer, str):
        raise PermanentError("invalid_invoice", "customer: expected string")
    payment = provider().charge(customer, cents, idempotency_key=attempt.effect_key("charge"))
    return {"payment": payment, "cents": cents}
