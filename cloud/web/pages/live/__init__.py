"""Pages from which a machine is called: Control, Statistics and Connect, snapshots, and the button STOP ALL."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.live import connect, control, snapshots, statistics, stopping


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of these pages."""
    modules = (control, statistics, connect, snapshots, stopping)
    return [route for module in modules for route in module.routes(cloud)]
