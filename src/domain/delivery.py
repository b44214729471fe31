"""What the transport knows of a delivery and the domain may ask."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """`receives` counts from 1. A receive is not an attempt: deferrals and outages use receives up too.

    - `is_alone` is False while the worker runs other jobs beside it, and can run this one by itself later.
    - `sent_at` is when the message was sent; None where that is not known.
    - `counts_runs` is False for a caller who decides by himself whether to try again (an HTTP request, a line of a
      file): such a run is not counted, and never refused for the number of those before it.
    """

    receives: int = 1
    message_id: str | None = None
    counts_runs: bool = True
    sent_at: datetime | None = None
    is_alone: bool = True

    @property
    def is_redelivery(self) -> bool:
        return self.receives > 1
