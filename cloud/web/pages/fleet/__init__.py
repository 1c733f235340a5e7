"""The list of machines, and work on many of them."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.fleet import jobs, machines


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list and of jobs."""
    return [*machines.routes(cloud), *jobs.routes(cloud)]
