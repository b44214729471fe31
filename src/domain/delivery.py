"""What the transport knows of a delivery and the domain may ask."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delivery:
    """`receives` counts from 1. A receive is not an attempt: deferrals and outages use receives up too."""

    receives: int = 1
    message_id: str | None = None

    @property
    def is_redelivery(self) -> bool:
        return self.receives > 1
