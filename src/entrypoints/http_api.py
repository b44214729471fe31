"""The HTTP API in Lambda: `handler` is what a function URL or an HTTP API (payload format 2.0) calls."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from json import dumps
from typing import Any

from adapters.http.handler import HttpHandler
from adapters.http.openapi import document
from adapters.http.problems import NOT_FOUND, WRONG_METHOD
from adapters.http.request import HttpRequest, NotAnHttpRequestError, read_event
from adapters.http.response import Response
from adapters.interrupts import marked_interrupts
from domain.operation import Operations
from entrypoints.container import Container
from entrypoints.edge import by_type_and_place
from entrypoints.registered import registered_operations
from entrypoints.sqs_worker import Context
from entrypoints.startup import handler_on_demand

type Handler = Callable[[Any, Context], dict[str, Any]]


def make_handler(operations: Operations, container: Container | None = None) -> Handler:
    """A handler for these operations, everything behind it built now. Raises `SettingError`."""
    parts = container or Container()
    parts.operations.override(operations)
    http, events, clock = parts.http_handler(), parts.events(), parts.clock()

    def handle(event: Any, context: Context) -> dict[str, Any]:
        """Answers every request. Raises `NotAnHttpRequestError`."""
        end = clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
        request = read_event(event)
        try:
            with marked_interrupts():
                return _answer(_routed(http, request, end))
        finally:
            events.flush()

    return by_type_and_place(handle, known=(NotAnHttpRequestError,), texts=parts.settings().log_error_messages)


def _routed(http: HttpHandler, request: HttpRequest, end: datetime) -> Response:
    try:
        match request.path, request.method:
            case "/jobs", "POST":
                return http.submit(request, invocation_end=end)
            case "/jobs", _:
                return http.refuse(request, WRONG_METHOD, {"Allow": "POST"})
            case "/openapi.json", "GET":
                return Response(200, _openapi())
            case path, "GET" if _is_of_a_job(path):
                return http.status(request)
            case path, _ if path == "/openapi.json" or _is_of_a_job(path):
                return http.refuse(request, WRONG_METHOD, {"Allow": "GET"})
            case _:
                return http.refuse(request, NOT_FOUND)
    except Exception as error:
        return http.failed(request, error)


def _is_of_a_job(path: str) -> bool:
    return path.startswith("/jobs/") and path != "/jobs/"


def _answer(response: Response) -> dict[str, Any]:
    """In the form of payload format 2.0."""
    headers = {"Content-Type": response.media_type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return {
        "statusCode": response.status,
        "headers": {**headers, **response.headers},
        "body": response.body,
        "isBase64Encoded": False,
    }


@cache
def _openapi() -> str:
    return dumps(document())


def _of_registered() -> Handler:
    return make_handler(registered_operations())


def __getattr__(name: str) -> Handler:
    return handler_on_demand(globals(), name, _of_registered)
