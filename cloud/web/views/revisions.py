"""The pages of a document with revisions, which a machine's configuration and a fragment share: review and history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cloud.editing.review import review
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Save
from cloud.values.limits import DOCUMENT_FORM
from cloud.web.common.site import fields, redirect, render
from cloud.web.views import editor
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class RevisedDocument:
    """A document, what its pages show of it, and how its revisions are read and written.

    `save` stores a document if the newest revision was saved at the given time; PRECONDITION otherwise.
    """

    organization: str
    section: tuple[str, str]
    name: str
    path: str
    """The page with the editor."""
    up: str
    """Page to which the history leads back."""
    part: str
    """Machine of which this is the configuration; empty for a fragment."""
    history_path: str
    current: int
    """Number of the newest revision."""
    may_save: bool
    revisions: Callable[[int | None, int], Awaitable[Sequence[Save]]]
    """Return up to so many revisions before a number, newest first."""
    revision: Callable[[int], Awaitable[Save]]
    """Return the revision with a number; NOT_FOUND."""
    save: Callable[[Mapping[str, Any], datetime], Awaitable[None]]


async def review_page(
    cloud: Cloud,
    request: Request,
    of: RevisedDocument,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    spelling: bool = False,
    **content: Any,
) -> Response | None:
    """Return the page that shows the changes before they are saved, with `content`; None if there are none.

    `spelling`: the text has changed, although it may mean the same document.
    """

    def rendered() -> Response | None:
        if not (changes := review(old, new)) and not spelling:
            return None
        return render(
            request,
            "review.html",
            section=of.section,
            path=of.path,
            name=of.name,
            changes=changes,
            **{key: value() if callable(value) else value for key, value in content.items()},
        )

    return await cloud.room.run(of.organization, rendered)


async def history_page(cloud: Cloud, request: Request, of: RevisedDocument, length: int, error: str = "") -> Response:
    """Return the page with `length` revisions and their changes; `?from=3&to=5` compares two."""
    query = request.query_params
    before = editor.number_in(query, "before") if query.get("before") else None
    saves = await of.revisions(before, length)
    numbers: list[int] = []
    if query.get("from") and query.get("to"):
        numbers = [editor.number_in(query, name) for name in ("from", "to")]
    compared = [(await of.revision(number)).revision for number in numbers]

    def rendered() -> Response:
        return render(
            request,
            "history.html",
            409 if error else 200,
            section=of.section,
            name=of.name,
            up=of.up,
            part=of.part,
            path=of.history_path,
            saves=editor.with_changes(saves),
            current=of.current,
            may_save=of.may_save,
            older=editor.older(saves),
            compared=editor.compared(compared),
            error=error,
        )

    return await cloud.room.run(of.organization, rendered)


async def revert(cloud: Cloud, request: Request, of: RevisedDocument, length: int) -> Response:
    """Save an old revision as a new one, unless there was another save since the page was opened."""
    form = await fields(request, DOCUMENT_FORM)
    base = await of.revision(editor.number_in(form, "base"))
    old = await of.revision(editor.number_in(form, "number"))
    try:
        await of.save(old.revision.document, base.revision.saved)
    except MachineError as error:
        if error.kind not in (ErrorKind.PRECONDITION, ErrorKind.INVALID):
            raise
        return await history_page(cloud, request, of, length, str(error))
    return redirect(of.path)
