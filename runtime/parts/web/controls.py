"""Actions of the pages: calling a method, stopping everything. POST only, and protected against forgery."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from engine.views import PageSource
from rpc.pages import STATUS, wants_json
from runtime.parts.web.forgery import Forgery
from schema import ErrorKind, MachineError
from support.text import words

MAX_FORM: Final = 1 << 20  # bytes; arguments of a call are small

_log = structlog.stdlib.get_logger("rdk.web")


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The result of an action, formatted for display."""

    took: str
    value: str | None = None  # indented JSON; None if there is no result
    error: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Called:
    """A call submitted by a form, for showing the form again with the outcome."""

    method: str
    form: Mapping[str, str]
    outcome: ActionOutcome


ShowCall = Callable[[Request, str, Called], Response]


class Controls:
    """The endpoints of actions."""

    def __init__(self, source: PageSource, forgery: Forgery, show_call: ShowCall) -> None:
        self._source = source
        self._forgery = forgery
        self._show_call = show_call

    async def call(self, request: Request) -> Response:
        """`POST /resources/<name>/call/<method>`: the fields of the form are the arguments."""
        name, method = request.path_params["name"], request.path_params["method"]
        form = await self._form(request)
        arguments = {key: value for key, value in form.items() if key != "csrf" and value != ""}
        outcome = await attempt(lambda: self._source.call(name, method, arguments))
        if wants_json(request.headers):
            return answer(outcome)
        return self._show_call(request, name, Called(method, arguments, outcome))

    async def stop_all(self, request: Request) -> Response:
        """`POST /stop-all`."""
        await self._form(request)
        outcome = await attempt(self._source.stop_all)
        _log.warning("stop all from the status page", error=outcome.error)
        if wants_json(request.headers):
            return answer(outcome)
        if outcome.error:
            raise MachineError(outcome.error)
        return RedirectResponse("/", 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """Return the fields of a URL-encoded form. Raises MachineError if it is too large or forged."""
        body = b""
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > MAX_FORM:
                    raise MachineError(f"the form is larger than {MAX_FORM} bytes", kind=ErrorKind.INVALID)
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200))
        self._forgery.check_form(request, form)
        return form


async def attempt(action: Callable[[], Awaitable[object]]) -> ActionOutcome:
    """Run `action` and return its outcome. Only cancellation is raised."""
    start = time.perf_counter()
    try:
        value = await action()
    except MachineError as error:
        return ActionOutcome(_since(start), error=str(error), status=STATUS.get(error.kind, 500))
    except NotImplementedError:
        return ActionOutcome(_since(start), error="this model does not support the method", status=501)
    except Exception as error:  # an error of a driver: show it as RPC does
        return ActionOutcome(_since(start), error=f"{type(error).__name__}: {error}", status=500)
    return ActionOutcome(_since(start), value=None if value is None else words.pretty(value))


def answer(outcome: ActionOutcome) -> Response:
    """Return the outcome as JSON for the page's script."""
    return JSONResponse(
        {"took": outcome.took, "value": outcome.value, "error": outcome.error}, status_code=outcome.status
    )


def _since(start: float) -> str:
    return words.took(time.perf_counter() - start)
