"""`/audit`: the audit log of changes, for owners of the organization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery, AuditRecord
from cloud.services.common.base import Cloud
from cloud.services.organizations.changes import ChangeService
from cloud.values.author import KEY, LOCATION, PART, PERSON
from cloud.web.common.site import author_of, render
from cloud.web.views.log_view import field_of, time_of
from schema.errors import ErrorKind, MachineError

HIDDEN: Final = frozenset({"of", "called"})  # shown with the subject
AUTHORS: Final = {KEY: "key", PART: "machine", LOCATION: "machine", PERSON: "person"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, for the template."""

    time: datetime
    author: str
    author_id: str
    kind: str
    action: str
    subject: str
    subject_id: str
    detail: tuple[tuple[str, str], ...]


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""
    return [Route("/audit", AuditPages(cloud).index)]


class AuditPages:
    """Endpoint of the audit log."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /audit?author=&action=&text=&from=&to=&before=`."""
        query = request.query_params
        before = query.get("before", "")
        if before and not (before.isascii() and before.isdigit() and len(before) < 19):
            raise MachineError(
                "`before` is not valid for this page", kind=ErrorKind.INVALID, remedy="go back to the newest entries"
            )
        start, end = time_of(query.get("from", ""), "from"), time_of(query.get("to", ""), "to")
        text = query.get("text", "").strip()
        audit_query = AuditQuery(
            query.get("author", ""),
            query.get("action", ""),
            text,
            start,
            end,
            int(before) if before else None,
            audit.PAGE + 1,
        )

        changes = await ChangeService(self._cloud, author_of(request)).changes(audit_query)
        entries = changes.entries
        page_records = entries[: audit.PAGE]
        chosen = {key: value for key, value in query.items() if key != "before" and value}
        older = (
            f"/audit?{urlencode({**chosen, 'before': page_records[-1].number})}" if len(entries) > audit.PAGE else ""
        )
        return render(
            request,
            "audit.html",
            entries=[_entry(record) for record in page_records],
            actions=[("", "all actions"), *((action, _words(action)) for action in changes.actions)],
            authors=[("", "all authors"), *changes.keys],
            query=audit_query,
            start=field_of(start),
            end=field_of(end),
            older=older,
            newest=f"/audit?{urlencode(chosen)}" if before else "",
        )


def _entry(record: AuditRecord) -> Entry:
    subject_name, kind = record.detail.get("called", ""), record.detail.get("of", "")
    return Entry(
        record.happened,
        record.name or record.author.name,
        record.author.name,
        AUTHORS.get(record.author.type, record.author.type),
        _words(record.action),
        " ".join(str(part) for part in (kind, subject_name) if part) or record.subject,
        record.subject,
        tuple((_words(key), _value(value)) for key, value in record.detail.items() if key not in HIDDEN),
    )


def _words(name: str) -> str:
    """Return an API name as words for people; robots are called machines."""
    return name.removesuffix("_json").replace("_", " ").replace("robot part", "part").replace("robot", "machine")


def _value(value: Any) -> str:
    if value == audit.LEFT_OUT:
        return "(not shown)"
    if isinstance(value, dict):
        return ", ".join(f"{_words(key)} {_value(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_value(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
