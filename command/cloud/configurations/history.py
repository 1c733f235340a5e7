"""Revisions of configurations and fragments from the cloud: numbers, documents, authors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from rpc.api import HISTORY

if TYPE_CHECKING:
    from rpc.api import ApiClient

PAGE: Final = 100  # revisions in one reply

_CALLS: Final = {
    "parts": ("list_part_revisions", "part_id"),
    "fragments": ("list_fragment_revisions", "fragment_id"),
}


async def revisions(client: ApiClient, kind: str, subject: str, count: int) -> list[Mapping[str, Any]]:
    """Return up to `count` revisions of a subject, newest first. `kind` is "parts" or "fragments"."""
    fetched: list[Mapping[str, Any]] = []
    while len(fetched) < count and (not fetched or fetched[-1]["revision"] > 1):
        before = fetched[-1]["revision"] if fetched else None
        page = await _page(client, kind, subject, before, min(PAGE, count - len(fetched)))
        if not page:
            break
        fetched += page
    return fetched


async def revision(client: ApiClient, kind: str, subject: str, number: int) -> Mapping[str, Any]:
    """Return the revision with this number. Raises click.ClickException if there is none."""
    page = await _page(client, kind, subject, number + 1, 1)
    if not page or page[0]["revision"] != number:
        (newest,) = await revisions(client, kind, subject, 1)
        raise click.ClickException(f"there is no revision {number}: the newest one is {newest['revision']}")
    return page[0]


async def _page(client: ApiClient, kind: str, subject: str, before: int | None, limit: int) -> list[Mapping[str, Any]]:
    method, argument = _CALLS[kind]
    page = await client.call(HISTORY, "", method, **{argument: subject}, before=before, limit=limit)
    return [
        {
            "revision": message["revision"],
            "saved": message["saved"].isoformat(),
            "author": message["author"],
            "author_type": message["author_type"],
            "author_id": message["author_id"],
            "document": json.loads(message["document_json"]),
        }
        for message in page
    ]
