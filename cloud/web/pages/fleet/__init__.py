"""The list of machines, their logs, and work on many of them."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.fleet import jobs, logs, machines


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list, of logs and of jobs."""
    return [*machines.routes(cloud), *logs.routes(cloud), *jobs.routes(cloud)]
