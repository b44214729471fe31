"""What a queue's URL says of where the queue is. boto3 asks the region that it is set to, whatever the URL says."""

import re
from typing import Final
from urllib.parse import urlsplit

_AMAZON: Final = re.compile(r"(.+\.)?(amazonaws\.com(\.cn)?|api\.aws|api\.amazonwebservices\.com\.cn)")
_REGION: Final = r"([a-z]{2,4}(?:-[a-z]+)+-[0-9]+)"
_REGIONS: Final = (rf"(?:[^.]+\.)*sqs(?:-fips)?\.{_REGION}\..+", rf"{_REGION}\.queue\.amazonaws\.com(?:\.cn)?")
_OLDEST: Final = "queue.amazonaws.com"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def region_of(url: str) -> str | None:
    """The region that a queue's URL, or an endpoint's, names; None where it names none, as an emulator's."""
    host = _host(url)
    if host == _OLDEST:
        return "us-east-1"
    for pattern in _REGIONS:
        if found := re.fullmatch(pattern, host):
            return found[1]
    return None


def elsewhere(url: str, region: str | None, endpoint: str | None = None) -> str:
    """Why a client of this region and endpoint does not ask the queue of that URL; empty if it does."""
    says = region_of(url)
    for asked in (region, region_of(endpoint or "")):
        if says is not None and asked is not None and says != asked:
            return f"is in {says}, but SQS is asked in {asked}"
    if endpoint is not None and _is_amazon(endpoint) and not _is_amazon(url):
        return f"is at {urlsplit(url).netloc}, but SQS is asked at {endpoint}"
    return ""


def is_same_queue(one: str, other: str) -> bool:
    """By account, name and place. Of one AWS region several hosts answer; any other host is a place of its own."""
    return _path(one) == _path(other) and _place(one) == _place(other)


def _place(url: str) -> object:
    region, host = region_of(url), _host(url)
    if region is not None and _is_amazon(url):
        return region
    return ("loopback" if host in _LOOPBACK else host), urlsplit(url).port


def _path(url: str) -> list[str]:
    return url.rsplit("/", 2)[1:]


def _is_amazon(url: str) -> bool:
    return _AMAZON.fullmatch(_host(url)) is not None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
