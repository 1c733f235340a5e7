"""`/debug/...`: profiles, tasks, memory, graph and counters of the running server, for local programs only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from rpc.access import allowed_host
from runtime.parts.web.forgery import is_loopback
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from nursery_graph import Graph

SECONDS: Final = 10.0  # default duration of a profile
LONGEST: Final = 300.0


@dataclass(frozen=True, slots=True)
class Process:
    """What `/debug/...` shows; `enabled` returns whether it is switched on now."""

    enabled: Callable[[], bool]
    graph: Graph
    sample: Callable[[], dict[str, float]]  # all statistics of the machine


Handler = Callable[[Process, Request], Awaitable[Response]]


async def answer(process: Process, request: Request) -> Response:
    """Answer a request. Raises MachineError if `/debug/` is switched off or the client is on another computer."""
    if not process.enabled():
        raise MachineError(
            "/debug/ is switched off",
            kind=ErrorKind.NOT_FOUND,
            remedy="start machine-server with -webprofile, or set enable_web_profile in the configuration",
        )
    if not is_loopback(request.scope.get("client")) or not allowed_host(request.headers.get("host", ""), ()):
        raise MachineError(
            "only programs on this computer may use /debug/",
            kind=ErrorKind.PERMISSION,
            remedy="use http://localhost on that computer; over SSH, forward the port with ssh -L",
        )
    what = request.path_params["what"].removeprefix("pprof/").rstrip("/")
    page = _PAGES.get(what)
    if page is None:
        raise MachineError(f"there is no /debug/{what}", kind=ErrorKind.NOT_FOUND, remedy="/debug/ lists all paths")
    return await page[0](process, request)


async def _index(process: Process, request: Request) -> Response:
    lines = [f"  {usage:48} {meaning}" for _, usage, meaning in _PAGES.values() if usage]
    return PlainTextResponse("Diagnostics of machine-server:\n\n" + "\n".join(lines) + "\n")


async def _profile(process: Process, request: Request) -> Response:
    from runtime.parts.web.profiling import cpu

    seconds = _seconds(request)
    form = _choice(request, "format", ("collapsed", "text", "pstats"))
    if form == "collapsed":
        with cpu.sampling() as stacks:
            await trio.sleep(seconds)
        return PlainTextResponse(cpu.collapsed(stacks))
    with cpu.counting() as profile:
        await trio.sleep(seconds)
    if form == "text":
        return PlainTextResponse(cpu.table(profile))
    return Response(
        cpu.pstats_file(profile),
        media_type="application/octet-stream",
        headers={"content-disposition": 'attachment; filename="machine-server.pstats"'},
    )


async def _tasks(process: Process, request: Request) -> Response:
    from runtime.parts.web.profiling.tasks import task_stacks

    return PlainTextResponse(task_stacks())


async def _memory(process: Process, request: Request) -> Response:
    from runtime.parts.web.profiling.memory import allocations

    seconds = _seconds(request)

    async def wait() -> None:
        await trio.sleep(seconds)

    return PlainTextResponse(await allocations(wait))


async def _graph(process: Process, request: Request) -> Response:
    from runtime.parts.web.profiling import graph

    form = _choice(request, "format", ("text", "dot", "svg"))
    snapshot = process.graph.snapshot()
    if form == "svg":
        return Response(graph.as_svg(snapshot), media_type="image/svg+xml")
    if form == "dot":
        return Response(graph.as_dot(snapshot), media_type="text/vnd.graphviz")
    return PlainTextResponse(graph.as_text(snapshot))


async def _metrics(process: Process, request: Request) -> Response:
    return JSONResponse(process.sample())


_PAGES: Final[Mapping[str, tuple[Handler, str, str]]] = {
    "": (_index, "", ""),
    "profile": (
        _profile,
        "/debug/profile?seconds=10&format=collapsed",
        "processor time: collapsed (stacks for flame graphs), text or pstats (which count calls and slow the server)",
    ),
    "tasks": (_tasks, "/debug/tasks", "all tasks with their stacks"),
    "memory": (_memory, "/debug/memory?seconds=10", "memory allocated in that time and not freed; objects by type"),
    "graph": (_graph, "/debug/graph?format=text", "nodes and edges: text, dot or svg"),
    "metrics": (_metrics, "/debug/metrics", "all statistics, as recorded with -ftdc"),
}


def _seconds(request: Request) -> float:
    text = request.query_params.get("seconds", "")
    try:
        seconds = float(text) if text else SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST:
        raise MachineError(
            f"seconds={text!r} is not valid",
            kind=ErrorKind.INVALID,
            remedy=f"use a number above 0, at most {LONGEST:g}",
        )
    return seconds


def _choice(request: Request, name: str, choices: tuple[str, ...]) -> str:
    value: Any = request.query_params.get(name, choices[0])
    if value not in choices:
        raise MachineError(
            f"{name}={value!r} is not supported", kind=ErrorKind.INVALID, remedy=f"use one of: {', '.join(choices)}"
        )
    return str(value)
