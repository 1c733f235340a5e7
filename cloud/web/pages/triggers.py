"""Triggers: what is in force for a part, what would happen, and what was delivered. `/triggers` has all parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.access import Of, Role, place_of, role_at
from cloud.author import Author
from cloud.fleet import fleet
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.triggering.api import Rule, Tried, TriggerService
from cloud.triggering.configured import examined, where
from cloud.triggering.deliveries import Delivery, State, deliveries
from cloud.triggering.senders import message_of
from cloud.web.site import author_of, fields, render, see, status_of, text_of
from schema.errors import ErrorKind, MachineError
from schema.syntax import parse_json
from triggers.document import EMAIL

PAGE: Final = 30  # deliveries
MAX_SHOWN: Final = 64 * 1024  # characters of a body

_EVENTS: Final = {
    "part_data_ingested": "data is ingested",
    "conditional_data_ingested": "data meets a condition",
    "conditional_logs_ingested": "something is logged",
    "part_online": "it comes online",
    "part_offline": "it goes offline",
}
_OPERATORS: Final = {"lt": "<", "gt": ">", "lte": "≤", "gte": "≥", "eq": "=", "neq": "≠", "regex": "matches"}
_CSS: Final = {State.DELIVERED: "ready", State.WAITING: "configuring", State.FAILED: "unhealthy"}


@dataclass(frozen=True, slots=True)
class Overview:
    """One part in the list of all."""

    part: str
    machine: str
    name: str
    location: str
    triggers: int
    problems: int
    latest: Delivery | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What somebody has asked of one trigger, and the answer. `text` is what was typed."""

    trigger: str
    text: str
    tried: Tried | None = None
    error: str = ""


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The list of all parts with triggers, the page of one part, and one delivery."""
    pages = _Pages(cloud)
    path = "/machines/{part}/triggers"
    return [
        Route("/triggers", pages.overview),
        Route(path, pages.show),
        Route(path, pages.act, methods=["POST"]),
        Route(f"{path}/deliveries/{{id}}", pages.delivery),
        Route(f"{path}/deliveries/{{id}}", pages.replay, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def overview(self, request: Request) -> Response:
        """`GET /triggers`."""
        author = author_of(request)
        return render(request, "triggers.html", rows=await self._cloud.store.read(lambda sql: _overview(sql, author)))

    async def show(self, request: Request) -> Response:
        """`GET /machines/<part>/triggers?trigger=&state=&before=`."""
        return await self._show(request)

    async def _show(self, request: Request, dry: DryRun | None = None, error: MachineError | None = None) -> Response:
        service, part, author = self._asked(request)
        query = request.query_params
        found = await service.list_triggers(part)
        trigger, state = query.get("trigger", ""), query.get("state", "")
        log = await service.list_deliveries(part, trigger, state, _number(query.get("before")), PAGE + 1)
        place, owner = await self._cloud.store.read(lambda sql: (where(sql, part), _owns(sql, author, part)))
        older = ""
        if len(log) > PAGE:
            older = "?" + urlencode({"trigger": trigger, "state": state, "before": log[PAGE - 1].number})
        return render(
            request,
            "part_triggers.html",
            status_of(error) if error else 400 if dry is not None and dry.error else 200,
            part=part,
            place=place,
            owner=owner,
            found=found,
            rules=[(one, words(one)) for one in found.triggers],
            log=log[:PAGE],
            older=older,
            css=_CSS,
            trigger=trigger,
            state=state,
            names=[(name, name) for name in dict.fromkeys(one.name for one in found.triggers)],
            states=[(one.value, one.value) for one in State],
            dry=dry,
            error=error or "",
            sent=query.get("sent", ""),
        )

    async def act(self, request: Request) -> Response:
        """A button of a trigger: `explain`, `test` or `start`."""
        service, part, _ = self._asked(request)
        form = await fields(request)
        name, text, action = text_of(form, "trigger"), text_of(form, "reading"), text_of(form, "action")
        try:
            if action == "explain":
                tried = await service.explain_trigger(part, name, reading_in(text))
                return await self._show(request, DryRun(name, text, tried))
            if action == "test":
                sent = await service.send_test(part, name, text_of(form, "value"), reading_in(text))
                return see(f"{_path(part)}?sent={len(sent)}#deliveries")
            if action == "start":
                await service.start_trigger(part, name)
                return see(_path(part))
        except MachineError as error:
            if error.kind is ErrorKind.INVALID:
                return await self._show(request, DryRun(name, text, error=str(error)))
            return await self._show(request, error=error)
        raise MachineError(f"there is no action {action[:40]!r}", kind=ErrorKind.INVALID)

    async def delivery(self, request: Request) -> Response:
        """`GET /machines/<part>/triggers/deliveries/<id>`."""
        return await self._delivery(request)

    async def _delivery(self, request: Request, error: MachineError | None = None) -> Response:
        service, part, author = self._asked(request)
        one, attempts = await service.get_delivery(part, request.path_params["id"])
        place, owner = await self._cloud.store.read(lambda sql: (where(sql, part), _owns(sql, author, part)))
        return render(
            request,
            "delivery.html",
            status_of(error) if error else 200,
            part=part,
            place=place,
            owner=owner,
            one=one,
            css=_CSS[one.state],
            attempts=attempts,
            body=body_of(one),
            event=_EVENTS.get(one.event, one.event),
            error=error or "",
        )

    async def replay(self, request: Request) -> Response:
        """Send a delivery once more."""
        service, part, _ = self._asked(request)
        subject = request.path_params["id"]
        try:
            await service.replay_delivery(part, subject)
        except MachineError as error:
            if error.kind is not ErrorKind.PRECONDITION:
                raise
            return await self._delivery(request, error)
        return see(f"{_path(part)}/deliveries/{quote(subject, safe='')}")

    def _asked(self, request: Request) -> tuple[TriggerService, str, Author]:
        author = author_of(request)
        return TriggerService(self._cloud, author), request.path_params["part"], author


def _overview(sql: Sql, author: Author) -> list[Overview]:
    rows = []
    for machine in fleet(sql, author):
        if machine.role < Role.OPERATOR:
            continue
        for part in machine.parts:
            found = examined(sql, part.id)
            if found.triggers or found.problems:
                latest = next(iter(deliveries(sql, part.id, limit=1)), None)
                name = machine.name if part.main else f"{machine.name} / {part.name}"
                counts = len(found.triggers), len(found.problems)
                rows.append(Overview(part.id, machine.name, name, machine.location.path, *counts, latest))
    return sorted(rows, key=lambda row: row.name.lower())


def _owns(sql: Sql, author: Author, part: str) -> bool:
    return role_at(sql, author, place_of(sql, Of.PART, part)) >= Role.OWNER


def words(rule: Rule) -> tuple[str, list[str]]:
    """What a trigger waits for, in words, and the conditions of it, one a line."""
    said, condition = _EVENTS.get(rule.event, rule.event), rule.condition
    if types := condition.get("data_types"):
        said = f"{', '.join(types)} {said}"
    if levels := condition.get("log_levels"):
        said += f" at {', '.join(levels)}"
    if method := condition.get("data_capture_method"):
        said = f"data from {method} meets a condition" if condition["evals"] else f"data comes from {method}"
    return said, [line for one in condition.get("evals", ()) for line in _conditions(one)]


def _conditions(one: Mapping[str, Any]) -> list[str]:
    sign, value = _OPERATORS[one["operator"]], one["value"]
    if not isinstance(value, Mapping):
        return [f"reading {sign} {json.dumps(value, ensure_ascii=False)}"]
    lines = []
    for name, inner in value.items():
        path = name
        while isinstance(inner, Mapping) and len(inner) == 1:
            key, inner = next(iter(inner.items()))
            path += f".{key}"
        lines.append(f"{path} {sign} {json.dumps(inner, ensure_ascii=False)}")
    return lines


def reading_in(text: str) -> Mapping[str, Any] | None:
    """The reading that somebody has typed; None for an empty field. INVALID."""
    if not text:
        return None
    found = parse_json(text.encode())
    if not isinstance(found, Mapping):
        raise MachineError(
            "the reading is no JSON object", kind=ErrorKind.INVALID, remedy='write such as {"temperature": 31.5}'
        )
    return found


def body_of(one: Delivery) -> str:
    """The text of what is delivered, as a person can read it."""
    if one.type == EMAIL:
        part = message_of(one).get_body(("plain",))
        text = part.get_content() if part is not None else ""
    else:
        text = one.body.decode("utf-8", "replace")
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else ""
        except ValueError:
            pass  # shown as it is
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n(cut off: {len(text)} characters)"


def _path(part: str) -> str:
    return f"/machines/{quote(part, safe='')}/triggers"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
