"""The HTTP door in Lambda: `handler` is what a function URL or an HTTP API (payload format 2.0) calls."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from json import dumps
from re import fullmatch
from typing import Any, Final

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from adapters.http.door import HttpDoor
from adapters.http.openapi import document
from adapters.http.problems import NOT_FOUND, WRONG_METHOD
from adapters.http.reply import Reply
from adapters.http.request import HttpRequest, NotAnHttpRequestError, read_event
from adapters.interrupts import marked_interrupts
from domain.operation import Operations
from entrypoints.container import Container
from entrypoints.edge import by_type_and_place
from entrypoints.registered import registered_operations
from entrypoints.sqs_worker import Context
from entrypoints.startup import handler_on_demand

type Handler = Callable[[Any, Context], dict[str, Any]]

_ALLOWED: Final = {"/jobs": "POST", "/jobs/.+": "GET", "/openapi.json": "GET"}


@dataclass(frozen=True, slots=True)
class _Call:
    request: HttpRequest
    event: APIGatewayProxyEventV2
    end: datetime


_CALL: Final[ContextVar[_Call]] = ContextVar("call")


class _Resolver(APIGatewayHttpResolver):
    """Powertools keeps the event on a class, for all threads. Here each thread reads its own, so that several may call
    one handler, as those of `onejob serve` do.
    """

    @property
    def current_event(self) -> APIGatewayProxyEventV2:  # type: ignore[override]
        return _CALL.get().event


def make_handler(operations: Operations, container: Container | None = None) -> Handler:
    """A handler for these operations, everything behind it built now. Raises `SettingError`."""
    parts = container or Container()
    parts.operations.override(operations)
    door, events, clock = parts.http_door(), parts.events(), parts.clock()
    app = _routes(door)

    def handle(event: Any, context: Context) -> dict[str, Any]:
        """Answers every request. Raises `NotAnHttpRequestError`."""
        end = clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
        request = read_event(event)
        routed = {**event, "rawPath": request.path}
        routed["requestContext"] = {**event["requestContext"], "stage": "$default"}  # whose path is in `base` now
        called = _CALL.set(_Call(request, APIGatewayProxyEventV2(routed), end))
        try:
            with marked_interrupts():
                return app.resolve(routed, context)  # type: ignore[arg-type]
        finally:
            _CALL.reset(called)
            events.flush()

    return by_type_and_place(handle, known=(NotAnHttpRequestError,), texts=parts.settings().log_error_messages)


def _routes(door: HttpDoor) -> _Resolver:
    app = _Resolver()

    @app.post("/jobs")
    def submit() -> Response[str]:
        call = _CALL.get()
        return _response(door.submit(call.request, invocation_end=call.end))

    @app.get("/jobs/.+")
    def status() -> Response[str]:
        return _response(door.status(_CALL.get().request))

    @app.get("/openapi.json")
    def openapi() -> Response[str]:
        return _response(Reply(200, _openapi()))

    @app.not_found
    def other(_: Exception) -> Response[str]:
        request = _CALL.get().request
        allowed = [method for path, method in _ALLOWED.items() if fullmatch(path, request.path)]
        if allowed:
            return _response(door.refuse(request, WRONG_METHOD, {"Allow": allowed[0]}))
        return _response(door.refuse(request, NOT_FOUND))

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]
    def crashed(error: Exception) -> Response[str]:
        return _response(door.crashed(_CALL.get().request, error))

    return app


def _response(reply: Reply) -> Response[str]:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **reply.headers}
    return Response(reply.status, reply.media_type, reply.body, headers)


@cache
def _openapi() -> str:
    return dumps(document())


def _of_registered() -> Handler:
    return make_handler(registered_operations())


def __getattr__(name: str) -> Handler:
    return handler_on_demand(globals(), name, _of_registered)
