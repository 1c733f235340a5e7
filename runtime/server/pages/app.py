"""The pages of the real machine, with its metrics and profiles of its process. Loaded with the first request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from engine import home
from engine.metrics import families
from rpc.pages import exposed
from runtime.parts.web.arranging import Arranging
from runtime.parts.web.debug import Process, answer
from runtime.parts.web.pages import build
from runtime.server.machine import Machine
from runtime.server.pages.view import MachineSource
from support import Worker
from telemetry.metrics import loop_passes

FOLDER: Final = "pages"  # below the home of machine-server
LOCAL: Final = "local"  # instead of the id of a part, without a cloud


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
            measured = families(machine.status(), machine.traffic, machine.pids())
            return await exposed([*measured, *loop_passes().families("machine")], request, worker.run)

    def folder() -> Path:
        cloud = machine.configured.document.cloud
        part = cloud.id if cloud is not None else ""
        return home(os.environ) / FOLDER / (part.replace(os.sep, "_").lstrip(".") or LOCAL)

    return build(
        MachineSource(machine),
        arranging=Arranging(folder),
        shared=machine.options.shared_dir,
        webrtc="webrtc" in machine.parts.present,
        debug=debug,
        metrics=metrics,
    )
