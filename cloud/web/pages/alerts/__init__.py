"""`/alerts`: open alerts, their history, and rules."""

from __future__ import annotations

from starlette.routing import BaseRoute

from cloud.services.common.base import Cloud
from cloud.web.pages.alerts import alerts, rules


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of all pages of alerts; those with an id come last."""
    return [route for pages in (rules, alerts) for route in pages.routes(cloud)]
