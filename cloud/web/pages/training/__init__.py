"""`/training` and `/models`: forms, jobs, reports and versions of models."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.training import jobs, models, notifications, submitting


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of all training pages."""
    return [route for pages in (submitting, notifications, jobs, models) for route in pages.routes(cloud)]
