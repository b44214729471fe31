"""What a worker that polls tells beside what the Lambda does: that it starts, stops, and cannot receive."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from adapters.telemetry import PowertoolsTelemetry, Received, origin_of


class WorkerTelemetry(PowertoolsTelemetry):
    """The same logs and metrics, and the worker's own."""

    def worker(self, event: str, **fields: Any) -> None:
        """One line: `worker_started`, `worker_stopping`, `worker_stopped`."""
        self._log(logging.INFO, event, **fields)

    def left_running(self, messages: Sequence[Received]) -> None:
        """The time to stop is over and these still run: their leases lapse, and others take them over."""
        for message in messages:
            self._log(logging.WARNING, "left_running", **origin_of(message))

    def receive_failed(self, error: Exception, again_in: timedelta) -> None:
        pause = round(again_in.total_seconds(), 3)
        self._log(logging.WARNING, "receive_failed", cause=str(error), again_in_seconds=pause)
        self._count("ReceiveFailed")

    def visibility_limit_reached(self, message: Received, since: datetime) -> None:
        self._log(logging.WARNING, "held_too_long", **origin_of(message), since=since.isoformat())
        self._count("HeldTooLong")

    def waits_to_run_alone(self, message: Received, longest: timedelta) -> None:
        self._log(logging.WARNING, "waits_to_run_alone", **origin_of(message), longest_seconds=longest.total_seconds())

    def put_off(self, message: Received) -> None:
        self._log(logging.WARNING, "put_off_to_run_alone", **origin_of(message))
        self._count("PutOffToRunAlone")

    def worker_error(self, messages: Sequence[Received], error: BaseException) -> None:
        ids = [message.message_id for message in messages]
        self._log(logging.ERROR, "unexpected_error", sqs_message_ids=ids, **self._error(error))
        self._count("Unexpected")
