"""Deleting what nobody answers for any more, page by page: the work of `onejob purge` and of the clean-up Lambda."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.backoff import backoff
from domain.errors import StoreUnavailableError
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged, StoreAdmin

TRIES: Final = 5
FIRST_PAUSE: Final = timedelta(milliseconds=200)
LONGEST_PAUSE: Final = timedelta(seconds=5)


@dataclass(slots=True, kw_only=True)
class Purge:
    """A purge under way. `after` is where to go on; it is right at any moment, however the purge ends.

    `page` records are looked at in one step, and no more than `page` are deleted in it.
    """

    admin: StoreAdmin
    clock: Clock
    jitter: Callable[[], float]
    page: int
    after: str | None = None
    seen: int = 0
    deleted: int = 0
    is_complete: bool = False

    def run(
        self, *, until: datetime | None = None, most: int | None = None, tell: Callable[[], None] = lambda: None
    ) -> None:
        """Go on until the end, the moment `until`, or `most` records were looked at; `tell` is called after each page.

        Raises `StoreUnavailableError` when a page fails for the last of its tries. What was deleted by then is not
        counted, and stays deleted.
        """
        while not self.is_complete and (until is None or self.clock.now() < until):
            left = self.page if most is None else min(self.page, most - self.seen)
            if left <= 0:
                return
            purged = self._page(left)
            self.seen += purged.seen
            self.deleted += purged.deleted
            self.after = purged.after
            self.is_complete = purged.after is None
            tell()

    def _page(self, limit: int) -> Purged:
        for number in range(1, TRIES + 1):
            try:
                return self.admin.purge(after=self.after, limit=limit)
            except StoreUnavailableError:
                if number == TRIES:
                    raise
                self.clock.sleep(backoff(number, FIRST_PAUSE, LONGEST_PAUSE, self.jitter))
        raise AssertionError("unreachable")
