"""A payment provider to try with: it honours idempotency keys as real ones do, and keeps its books in a file."""

import sqlite3
from contextlib import closing
from pathlib import Path


class PaymentProvider:
    """Charging twice under one key charges once, and answers the same payment."""

    def __init__(self, books: Path) -> None:
        self._books = books
        with closing(self._open()) as books_open:
            books_open.execute(
                "CREATE TABLE IF NOT EXISTS charge (key TEXT PRIMARY KEY, payment TEXT, customer TEXT, cents INTEGER)"
            )

    def charge(self, customer: str, cents: int, *, idempotency_key: str) -> str:
        """The id of the payment."""
        with closing(self._open()) as books:
            books.execute(
                "INSERT OR IGNORE INTO charge VALUES (?, 'pay-' || lower(hex(randomblob(4))), ?, ?)",
                (idempotency_key, customer, cents),
            )
            payment: str = books.execute("SELECT payment FROM charge WHERE key = ?", (idempotency_key,)).fetchone()[0]
            return payment

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._books, isolation_level=None, timeout=10)
