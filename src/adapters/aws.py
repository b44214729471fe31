"""Clients of AWS that believe AWS alone: an answer counts only with the evidence that the service gives.

A wrong endpoint, a proxy or a captive portal answers any request with 200 and HTML, `{}` or nothing, which botocore
takes for a success.
"""

from collections.abc import Callable
from hashlib import md5
from typing import Any, Final
from zlib import crc32

import boto3
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from adapters.threads.seam import SYSTEM_THREADS

_REQUEST_ID: Final = "x-amzn-requestid"
_CHECKSUM: Final = "x-amz-crc32"
_HANDLER: Final = "onejob-evidence"
_making: Final = SYSTEM_THREADS.lock()


class NoEvidenceError(HTTPClientError):
    """An answer of status 200 that lacks what the service puts into it. The request may have been carried out."""

    fmt = "{operation}: what answered is not AWS, or a part of its answer is lost ({lacks})"


class CallFailedError(BotoCoreError):
    """What botocore does not say that it raises, as from the refresh of credentials. The request may have been made."""

    fmt = "{kind}"

    @property
    def is_no_url(self) -> bool:
        """Whether nothing was asked: botocore raises a bare `ValueError` for an endpoint that is no URL."""
        return isinstance(self.__cause__, ValueError)


def client(service: Any, **options: Any) -> Any:
    """A client that raises `NoEvidenceError`. Thread-safe, which boto3's own default session is not."""
    with _making:
        return require_evidence(boto3.client(service, **options))


def require_evidence[C](made: C) -> C:
    """Have this client raise `NoEvidenceError` for what is no answer of AWS. Repeated, it changes nothing."""
    meta = getattr(made, "meta", None)  # a test's double has none
    if meta is not None:
        meta.events.register("after-call", _check, unique_id=_HANDLER)
    return made


def call[T](request: Callable[..., T], **parameters: Any) -> T:
    """Make a request. Raises `ClientError` or `BotoCoreError`, whatever comes out of the SDK."""
    try:
        return request(**parameters)
    except (ClientError, BotoCoreError):
        raise
    except Exception as error:
        raise CallFailedError(kind=type(error).__name__) from error


def check_sent(request: str, body: str, answer: Any) -> str:
    """The id of the message that SQS took. Raises `NoEvidenceError`: without an id, or with another body's digest."""
    message_id = answer.get("MessageId") if isinstance(answer, dict) else None
    if not isinstance(message_id, str) or not message_id:
        raise NoEvidenceError(operation=request, lacks="MessageId")
    digest = md5_of(body)
    if (answer.get("MD5OfMessageBody") or digest) != digest:
        raise NoEvidenceError(operation=request, lacks="MD5OfMessageBody")
    return message_id


def md5_of(body: str) -> str:
    """As SQS tells it of a body that it took."""
    return md5(body.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def _check(http_response: Any, parsed: dict[str, Any], model: Any, **_: Any) -> None:
    if http_response.status_code >= 300:  # an error, which botocore raises
        return
    service, request = model.service_model.service_name, model.name
    headers = parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if not headers.get(_REQUEST_ID):
        raise NoEvidenceError(operation=request, lacks=_REQUEST_ID)
    if service == "dynamodb" and headers.get(_CHECKSUM) != str(crc32(http_response.content)):
        raise NoEvidenceError(operation=request, lacks=_CHECKSUM)
