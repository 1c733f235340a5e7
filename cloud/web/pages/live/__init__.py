"""Pages of a machine whose scripts call it: the tab Control."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.live import control


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [*control.routes(cloud)]
