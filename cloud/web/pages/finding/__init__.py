"""`/search` and `/help`: machines, pages, actions and the documentation, by words."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.finding import help as help_pages
from cloud.web.pages.finding import search


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the search and of the help."""
    return [*search.routes(cloud), *help_pages.routes(cloud)]
