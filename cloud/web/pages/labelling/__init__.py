"""`/datasets` and below: datasets, their pictures and labels, and the page that labels pictures."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.labelling import datasets, labeller


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of all labelling pages."""
    return [*datasets.routes(cloud), *labeller.routes(cloud)]
