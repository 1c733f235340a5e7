"""The pages of the real machine, with its metrics and profiles of its process. Loaded with the first request."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from rpc.pages.scrape import exposed
from runtime.engine.metrics.prometheus import families
from runtime.parts.web.debug import Process, answer
from runtime.parts.web.pages import build
from runtime.server.machine import Machine
from runtime.server.pages.view import MachineSource
from support.worker import Worker


def app(machine: Machine) -> Starlette:
    """Return the application that shows `machine`, to be wrapped in a Guard with the paths in PUBLIC."""
    process = Process(
        enabled=lambda: machine.options.web_profile or machine.configured.document.enable_web_profile,
        graph=machine.graph,
        sample=machine.sample,
    )

    async def debug(request: Request) -> Response:
        """Answer `GET /debug/...`: profiles, tasks and the graph."""
        return await answer(process, request)

    async def metrics(request: Request) -> Response:
        """Answer `GET /metrics`, for Prometheus."""
        worker = Worker("metrics")
        async with worker.opened():
            return await exposed(families(machine.status(), machine.traffic, machine.pids()), request, worker.run)

    return build(
        MachineSource(machine),
        shared=machine.options.shared_dir,
        webrtc="webrtc" in machine.parts.present,
        debug=debug,
        metrics=metrics,
    )
