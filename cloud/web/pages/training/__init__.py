"""`/training` and `/models`: forms, jobs, reports and versions of models."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.training import jobs, models, submitting


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of all training pages."""
    return [*submitting.routes(cloud), *jobs.routes(cloud), *models.routes(cloud)]
