"""What makes two deliveries the same job: the key, and what makes them the same request: the fingerprint."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from domain.errors import InvalidJobError
from domain.strict_json import Json, canonical

MAX_ID_BYTES: Final = 256
_MOST_CODE_POINTS: Final = 4
"""Of which normal form C makes one, at most."""

MAX_ID_CODE_POINTS: Final = _MOST_CODE_POINTS * MAX_ID_BYTES
"""In any spelling of a legal id. Normalising takes the square of a text's length, and stops every other thread for so
long: what is longer is refused before.
"""

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
FINGERPRINT_VERSION: Final = "v1"
_KEY: Final = re.compile(rf"({NAME.pattern})\.({NAME.pattern})#([0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class JobKey:
    """Where a job's record lives. Made of names that a user chose, never of a module, function or Lambda name."""

    namespace: str
    operation: str
    digest: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.operation}#{self.digest}"

    @classmethod
    def parse(cls, text: str) -> "JobKey | None":
        """The key of that text; None where it is none of onejob's."""
        found = _KEY.fullmatch(text)
        return cls(*found.groups()) if found else None


def job_key(namespace: str, operation: str, job_id: str, tenant: str | None = None) -> JobKey:
    """The key of a job; golden vectors in tests/domain pin it, since another key means another run."""
    identity: Json = job_id if tenant is None else [tenant, job_id]
    return JobKey(namespace, operation, sha256(canonical(identity).encode()).hexdigest())


def fingerprint_scheme(volatile: Iterable[str]) -> str:
    """The name of version and ignore list: changing either yields another scheme, and schemes never mismatch."""
    return _scheme(_normal_names(volatile))


def _scheme(ignored: frozenset[str]) -> str:
    names: list[Json] = [*sorted(ignored)]
    if not names:
        return FINGERPRINT_VERSION
    return f"{FINGERPRINT_VERSION}-{sha256(canonical(names).encode()).hexdigest()[:12]}"


def fingerprint(payload: dict[str, Json], volatile: Iterable[str] = ()) -> str:
    """`{scheme}:` and SHA-256 of the payload's canonical JSON, less its top-level volatile members in any form."""
    ignored = _normal_names(volatile)
    longest = _MOST_CODE_POINTS * max(map(len, ignored), default=0)
    kept: Json = {name: value for name, value in payload.items() if not _is_one_of(name, ignored, longest)}
    return f"{_scheme(ignored)}:{sha256(canonical(kept).encode()).hexdigest()}"


def _normal_names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(unicodedata.normalize("NFC", name) for name in names)


def _is_one_of(name: str, names: frozenset[str], longest: int) -> bool:
    """In normal form C, as an id is; a name that is too long to be one of them costs no normalising."""
    return len(name) <= longest and unicodedata.normalize("NFC", name) in names


def same_scheme(stored: str | None, given: str) -> bool:
    """Whether two fingerprints can be compared at all: both are there and of one scheme."""
    return stored is not None and stored.partition(":")[0] == given.partition(":")[0]


def clean_name(value: Json, member: str) -> str:
    """A namespace or an operation name. Raises `InvalidJobError`."""
    if not isinstance(value, str):
        raise InvalidJobError("invalid_payload", f"{member}: expected string")
    if not NAME.fullmatch(value):
        raise InvalidJobError(f"invalid_{member}", "expected 1 to 64 characters of A-Z a-z 0-9 _ -")
    return value


def clean_id(value: Json, member: str) -> str:
    """A `job_id` or tenant in normal form C. Raises `InvalidJobError`: without identity nothing runs."""
    if value is None or value == "":
        raise InvalidJobError(f"missing_{member}")
    if not isinstance(value, str):
        raise InvalidJobError("invalid_payload", f"{member}: expected string")
    if len(value) > MAX_ID_CODE_POINTS:
        raise _too_long(member)
    text = unicodedata.normalize("NFC", value)
    if not text.isprintable() and any(_is_unprintable(character) for character in text):
        raise InvalidJobError(f"invalid_{member}", "control, format, unassigned or separator character")
    if text != text.strip():
        raise InvalidJobError(f"invalid_{member}", "leading or trailing white space")
    if len(text.encode()) > MAX_ID_BYTES:
        raise _too_long(member)
    return text


def _too_long(member: str) -> InvalidJobError:
    return InvalidJobError(f"invalid_{member}", f"longer than {MAX_ID_BYTES} bytes of UTF-8")


def _is_unprintable(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")
