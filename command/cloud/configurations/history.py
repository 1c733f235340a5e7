"""Revisions of configurations and fragments from the cloud: numbers, documents, authors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from command.cloud.http import request_json

PAGE: Final = 100  # revisions in one reply


async def revisions(kind: str, subject: str, count: int) -> list[Mapping[str, Any]]:
    """Return up to `count` revisions of a subject, newest first. `kind` is "parts" or "fragments"."""
    fetched: list[Mapping[str, Any]] = []
    while len(fetched) < count and (not fetched or fetched[-1]["revision"] > 1):
        before = f"before={fetched[-1]['revision']}&" if fetched else ""
        page = await _page(kind, subject, f"{before}limit={min(PAGE, count - len(fetched))}")
        if not page:
            break
        fetched += page
    return fetched


async def revision(kind: str, subject: str, number: int) -> Mapping[str, Any]:
    """Return the revision with this number. Raises click.ClickException if there is none."""
    page = await _page(kind, subject, f"before={number + 1}&limit=1")
    if not page or page[0]["revision"] != number:
        (newest,) = await revisions(kind, subject, 1)
        raise click.ClickException(f"there is no revision {number}: the newest one is {newest['revision']}")
    return page[0]


async def _page(kind: str, subject: str, query: str) -> list[Mapping[str, Any]]:
    answer = await request_json("GET", f"/api/v1/{kind}/{quote(subject, safe='')}/revisions?{query}")
    page: list[Mapping[str, Any]] = answer["revisions"]
    return page
