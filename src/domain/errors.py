"""The errors that cross a boundary of the domain, each with what its catcher may conclude."""


class InvalidJobError(Exception):
    """A message that can never become a job; no retry mends it.

    `reason` is one word from a closed list (`missing_job_id`, `not_json`, ...), fit for a metric. `detail`
    says where and what was expected (`job_id: expected string`), never the value that was found.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class PermanentError(Exception):
    """Raised by an operation, before any effect, for what no retry can mend: the job is rejected at once.

    `code` names the reason (`card_expired`) and `detail` where it lies (`amount: expected number`). Both
    travel in the dead letter and in the logs: put no value of the payload into them.
    """

    code = "permanent_error"
    detail = ""

    def __init__(self, code: str = code, detail: str = detail) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail


class UnusableStoreError(Exception):
    """A store cannot be opened; the text says why and what to do. Nothing in it was changed."""


class StoreUnavailableError(Exception):
    """The store could not answer. Whether the write landed is unknown; asking again is always safe."""


class ForeignRecordError(StoreUnavailableError):
    """The record under this key belongs to another `job_id`: nothing may be read from it or written to it."""


class LeaseLostError(Exception):
    """The record is not in progress under this (owner, attempt): nothing was written."""


class HeartbeatUnavailableError(Exception):
    """Nothing would renew a lease: no thread can be had for it. Nothing has begun."""


class RecordChangedError(Exception):
    """Between looking at a record and changing it somebody else changed it: nothing was written."""


class LeaseHeldError(Exception):
    """An attempt has claimed the job and not ended it: nothing was written."""


def text_of(error: BaseException) -> str:
    """What an error says, also where saying it fails."""
    try:
        return str(error)
    except BaseException as broken:
        return f"no text: {type(broken).__name__}"
