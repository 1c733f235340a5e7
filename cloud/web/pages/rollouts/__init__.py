"""`/rollouts`: open rollouts and their history, the start of one, and who runs which version."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.rollouts import rollouts, starting, versions


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of all pages of rollouts; those with an id come last."""
    return [route for pages in (starting, versions, rollouts) for route in pages.routes(cloud)]
