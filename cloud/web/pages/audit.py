"""`/audit`: the audit log of changes, for owners of the organization."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.documents.pieces import LARGE
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.audit import AuditQuery, AuditRecord
from cloud.domain.permissions.rules import AccessRule, signed_in
from cloud.services.common.base import Cloud
from cloud.services.organizations.changes import ChangeService
from cloud.values.author import KEY, LOCATION, PART, PERSON
from cloud.web.api.downloads import GeneratedFile
from cloud.web.common.site import author_of, render
from cloud.web.views.log_view import field_of, time_of
from schema import ErrorKind, MachineError
from support.text import harmless_cell

_LONG: Final = re.compile(r"\b([0-9a-f]{8})(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,56})\b")  # ids, digests
COLUMNS: Final = ("time", "author type", "author id", "author", "action", "kind", "name", "id", "detail")
"""Header of an exported file; the detail is JSON."""
EXPORTED: Final = 10 * audit.PAGE  # entries read at once for a file
HIDDEN: Final = frozenset({"of", "called", "revision"})  # shown with the subject, or by a link
BULK_JOB: Final = "bulk job"
LINKS: Final[Mapping[str, str]] = {
    ObjectKind.PART.value: "/machines/{id}",
    ObjectKind.ROBOT.value: "/machines/{id}",
    ObjectKind.FRAGMENT.value: "/fragments/{id}",
    ObjectKind.DATASET.value: "/datasets/{id}",
    ObjectKind.KEY.value: "/keys#key-{id}",
    ObjectKind.JOB.value: "/training/{id}",
    BULK_JOB: "/fleet/{id}",
}
"""The page of an object by its kind."""

CREATED: Final[Mapping[str, str]] = {
    "create_key": ObjectKind.KEY.value,
    "start_fleet_job": BULK_JOB,
    "set_fleet_view": "view",
}
"""Kind of what an action creates, by the action, where the subject of the entry is the new object."""

FEW: Final = 3
"""Ids in a list that are shown; of more, their number is."""

BY_JOB: Final = "change_by_job"
"""Action of a bulk job at a machine."""

HISTORIES: Final[Mapping[str, str]] = {
    "update_robot_part": "/machines/{id}/history",
    "update_fragment": "/fragments/{id}/history",
    "set_config_property": "/machines/{id}/history",
    BY_JOB: "/machines/{part}/history",
}
"""The page that shows the difference which an entry leaves out, by its action; older entries name no revision."""

AUTHORS: Final = {KEY: "key", PART: "machine", LOCATION: "machine", PERSON: "person"}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change, for the template. `href` is the page of its subject, `difference` that of a document it changed."""

    time: datetime
    author: str
    author_id: str
    kind: str
    action: str
    subject: str
    subject_id: str
    detail: tuple[tuple[str, str, str], ...]  # name, value, and the value with shortened ids
    href: str
    difference: str
    job: str  # the page of the bulk job that did it


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /audit": signed_in("entries of organizations that the caller owns"),
    "GET /audit.csv": signed_in("entries of organizations that the caller owns"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes."""
    pages = AuditPages(cloud)
    return [Route("/audit", pages.index), Route("/audit.csv", pages.export)]


class AuditPages:
    """Endpoints of the audit log."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /audit?author=&action=&text=&from=&to=&before=`."""
        query = request.query_params
        audit_query = replace(_query(query), limit=audit.PAGE + 1)
        changes = await ChangeService(self._cloud, author_of(request)).changes(audit_query)
        entries = changes.entries
        page_records = entries[: audit.PAGE]
        before = query.get("before", "")
        chosen = {key: value for key, value in query.items() if key != "before" and value}
        older = (
            f"/audit?{urlencode({**chosen, 'before': page_records[-1].number})}" if len(entries) > audit.PAGE else ""
        )
        return render(
            request,
            "audit.html",
            days=[
                (day, list(entries))
                for day, entries in groupby(
                    (_entry(record, changes.places) for record in page_records), lambda entry: f"{entry.time:%Y-%m-%d}"
                )
            ],
            narrowed=bool(chosen or before),
            actions=[("", "all actions"), *((action, _words(action)) for action in changes.actions)],
            authors=[("", "all authors"), *changes.keys],
            query=audit_query,
            start=field_of(audit_query.start),
            end=field_of(audit_query.end),
            older=older,
            export=f"/audit.csv?{urlencode(chosen)}",
            newest=f"/audit?{urlencode(chosen)}" if before else "",
        )

    async def export(self, request: Request) -> Response:
        """`GET /audit.csv` and the filter of the page: all entries that match, newest first, as CSV."""
        service, query = ChangeService(self._cloud, author_of(request)), _query(request.query_params)

        async def pieces() -> AsyncGenerator[bytes, None]:
            head, following = _csv_lines([COLUMNS]), query
            while entries := (await service.changes(replace(following, limit=EXPORTED))).entries:
                yield head + await service.offload(LARGE, partial(_exported, entries))
                head, following = b"", replace(following, before=entries[-1].number)
            yield head

        return GeneratedFile(pieces(), "text/csv; charset=utf-8", "audit.csv")


def _query(query: Mapping[str, str]) -> AuditQuery:
    before = query.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise MachineError(
            "`before` is not valid for this page", kind=ErrorKind.INVALID, remedy="go back to the newest entries"
        )
    start, end = time_of(query.get("from", ""), "from"), time_of(query.get("to", ""), "to")
    author, action, text = (query.get(name, "") for name in ("author", "action", "text"))
    return AuditQuery(author, action, text.strip(), start, end, int(before) if before else None)


def _exported(records: Sequence[AuditRecord]) -> bytes:
    return _csv_lines(
        [
            record.happened.isoformat(),
            AUTHORS.get(record.author.type, record.author.type),
            record.author.name,
            record.name,
            record.action,
            str(record.detail.get("of", "")),
            str(record.detail.get("called", "")),
            record.subject,
            json.dumps({key: value for key, value in record.detail.items() if key not in {"of", "called"}}),
        ]
        for record in records
    )


def _csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(map(harmless_cell, row) for row in rows)
    return buffer.getvalue().encode()


def _entry(record: AuditRecord, places: Mapping[tuple[str, str], str]) -> AuditEntry:
    subject_name, kind = record.detail.get("called", ""), record.detail.get("of", "")
    hidden = HIDDEN
    if record.action in CREATED and not kind:
        subject_name, kind = record.detail.get("name", ""), CREATED[record.action]
        hidden |= {"name", "made"}
    deleted = record.action.partition("_")[0] == "delete"
    revision, part, job = (record.detail.get(name) for name in ("revision", "part", "job"))
    by_job = record.action == BY_JOB
    hidden |= {"part", "job"} if by_job else set()
    left_out = bool(part) if by_job else audit.LEFT_OUT in record.detail.values()
    difference = HISTORIES.get(record.action, "") if left_out else ""
    if difference and isinstance(revision, int) and revision > 1:
        difference += f"?{urlencode({'from': revision - 1, 'to': revision})}#comparison"
    return AuditEntry(
        record.happened,
        record.name or record.author.name,
        record.author.name,
        AUTHORS.get(record.author.type, record.author.type),
        _words(record.action),
        " ".join(str(part) for part in (kind, subject_name) if part) or record.subject,
        record.subject,
        tuple(
            (_words(key), text, _many(record.detail[key]) or _LONG.sub(r"\1…", text))
            for key, text in (
                (key, "; ".join(_role(role, places) for role in audit.roles_in(key, value)) or _value(value))
                for key, value in record.detail.items()
                if key not in hidden and not (difference and value == audit.LEFT_OUT)
            )
        ),
        LINKS.get(kind, "").format(id=record.subject) if not deleted else "",
        difference.format(id=record.subject, part=part),
        f"/fleet/{job}" if by_job else "",
    )


def _many(value: Any) -> str:
    """Return how many ids a list has, if that is more than a few; otherwise an empty text."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return ""
    ids = [item for item in value if item != audit.LEFT_OUT]
    if len(ids) <= FEW or not all(_LONG.fullmatch(item) for item in ids):
        return ""
    return str(len(ids)) if len(ids) == len(value) else f"more than {len(ids)}"


def _role(role: Mapping[str, Any], places: Mapping[tuple[str, str], str]) -> str:
    kind, subject = role["resource_type"], role["resource_id"]
    return f"{role['authorization_id'].rpartition('_')[2]} of {_words(kind)} {places.get((kind, subject), subject)}"


def _words(name: str) -> str:
    """Return an API name as words for people; robots are called machines."""
    return (
        name.removesuffix("_json")
        .replace("authorization", "role")
        .replace("_", " ")
        .replace("robot part", "part")
        .replace("robot", "machine")
    )


def _value(value: Any) -> str:
    if value == audit.LEFT_OUT:
        return "(not shown)"
    if isinstance(value, dict):
        return ", ".join(f"{_words(key)} {_value(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_value(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
