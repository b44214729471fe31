"""How operator commands reach AWS, and what an error of AWS means for the user."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from adapters.aws import CallFailedError, NoEvidenceError
from adapters.sqs.queue_url import elsewhere
from domain.errors import text_of
from entrypoints.cli.errors import UnusableOptionError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sts.client import STSClient

AWS_ERRORS: Final = (ClientError, BotoCoreError, ValueError)
"""The last is what botocore raises for an endpoint that is no URL, among other things: `explained` tells which."""

TRIES: Final = 4
"""For what may be asked again at no risk. A command that sends is given clients that try once."""

PLACE_SETTINGS: Final = "--region (AWS_DEFAULT_REGION) and --endpoint-url (AWS_ENDPOINT_URL) say where"

_DENIED: Final = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError")
_CREDENTIALS: Final = (
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
)
_NO_QUEUE: Final = ("QueueDoesNotExist", "NonExistentQueue")


@dataclass(frozen=True, slots=True)
class Aws:
    """Where AWS is: as boto3 finds it (environment, profile), unless told otherwise."""

    region: str | None = None
    endpoint_url: str | None = None

    @overload
    def client(self, service: Literal["dynamodb"], tries: int = ...) -> "DynamoDBClient": ...
    @overload
    def client(self, service: Literal["lambda"], tries: int = ...) -> "LambdaClient": ...
    @overload
    def client(self, service: Literal["sqs"], tries: int = ...) -> "SQSClient": ...
    @overload
    def client(self, service: Literal["sts"], tries: int = ...) -> "STSClient": ...
    def client(self, service: Any, tries: int = TRIES) -> Any:
        """A client that gives up in time. Raises one of `AWS_ERRORS`."""
        from adapters.aws import client

        config = Config(
            connect_timeout=5,
            read_timeout=10,
            retries={"mode": "standard", "total_max_attempts": tries},
            user_agent_extra="onejob-cli",
        )
        return client(service, region_name=self.region, endpoint_url=self.endpoint_url, config=config)

    def sqs_of(self, url: str, option: str, tries: int = TRIES) -> "SQSClient":
        """A client for the queue of that URL, which `option` brought. Raises `UnusableOptionError` where AWS is asked
        in another place than the URL says, and one of `AWS_ERRORS`.
        """
        client = self.client("sqs", tries)
        check_place(client, url, option)
        return client


def check_place(client: "SQSClient", url: str, option: str) -> None:
    """Raises `UnusableOptionError` for the URL of a queue that this client would not ask, but one of its name."""
    if why := elsewhere(url, client.meta.region_name, client.meta.endpoint_url):
        raise UnusableOptionError(f"{option} {url}: {why}: {PLACE_SETTINGS}")


def is_setting(error: BaseException) -> bool:
    """Whether nothing was asked of AWS yet: a setting is missing or cannot be used."""
    if isinstance(error, CallFailedError) and error.__cause__ is not None:
        return is_setting(error.__cause__)
    return isinstance(
        error, NoCredentialsError | PartialCredentialsError | NoRegionError | InvalidRegionError | ProfileNotFound
    ) or is_no_url(error)


def is_no_url(error: BaseException) -> bool:
    """Whether botocore refuses the endpoint: it raises a bare `ValueError`, which may be anything else too."""
    return isinstance(error, ValueError) and str(error).startswith("Invalid endpoint")


def explained(error: BaseException, on: str = "") -> str:
    """One line: what went wrong, and which setting, permission or region mends it. `on` is what was asked for."""
    match error:
        case ClientError():
            return _of_aws(error, on)
        case NoCredentialsError() | PartialCredentialsError():
            return f"{error}: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        case NoRegionError():
            return "no region is set: --region, or AWS_DEFAULT_REGION"
        case InvalidRegionError():
            return f"{error}: --region, or AWS_DEFAULT_REGION"
        case ProfileNotFound():
            return f"{error}: AWS_PROFILE names one of ~/.aws/config"
        case CallFailedError() if error.__cause__ is not None:
            return explained(error.__cause__, on)
        case NoEvidenceError():
            return f"{error}: is the endpoint right (--endpoint-url, AWS_ENDPOINT_URL), and is there a proxy before it?"
        case NoConnectionError() | HTTPClientError():
            return f"{error}: is the endpoint right (--endpoint-url, AWS_ENDPOINT_URL, --region), and the network up?"
        case ValueError() if is_no_url(error) and ".." in str(error):  # made of an empty region
            return "no region is set: --region, or AWS_DEFAULT_REGION"
        case ValueError() if is_no_url(error):
            return f"{error}: --endpoint-url, or AWS_ENDPOINT_URL, is no URL"
        case _:
            return f"{type(error).__name__}: {text_of(error)}"


def _of_aws(error: ClientError, on: str) -> str:
    code = error.response["Error"].get("Code", "unknown").rpartition(".")[2].rpartition("#")[2]
    operation = error.operation_name
    beside = f" on {on}" if on else ""
    if code in _DENIED:
        return f"{operation}{beside} is denied to this caller; its role or user needs it: {_message(error)}"
    if code in _CREDENTIALS:
        return f"{operation}: AWS refuses the credentials ({code}): renew them, and check this machine's clock"
    if code in _NO_QUEUE:
        return f"there is no queue {on.removeprefix('queue ')}: check its URL, the region (--region) and the account"
    if code == "ResourceNotFoundException":
        what = on.rpartition(" of ")[2] or "such thing"  # the table, where its TTL was asked for
        return f"{operation}: there is no {what}: check its name, the region (--region) and the account"
    return f"{operation}{beside}: {code}: {_message(error)}"


def _message(error: ClientError) -> str:
    return " ".join(str(error.response["Error"].get("Message", "")).split())[:300]
