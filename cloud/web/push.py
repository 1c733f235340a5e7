"""The push channel: a machine hears of its configuration within moments, and tells how it is.

`/machine/v1/follow?part=ID&platform=linux/arm64&tags=distro:debian,pi:5`, a WebSocket with a token in `authorization`.
The cloud sends a JSON object whenever what it says has changed, beginning at once: `revision`, `document`, `cloud`,
`keys`, `authorities` (see cloud.facts), and `restart` when somebody asked for one, once; and `{"watched": seconds}`
when somebody looks at the machine for so long. The machine sends `{"report": {...}}`; reports are kept and shown. While
somebody looks it also sends `{"live": {...}}`: resources and readings, about once a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import trio
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from cloud import watching
from cloud.access import Of, Role, place_of, require
from cloud.authentication import author_of
from cloud.author import Author
from cloud.certificates.authorities import TOPIC as AUTHORITY
from cloud.facts import facts, roots
from cloud.machines import mark_restart, note_seen, part
from cloud.openings import FOLLOWERS
from cloud.registry.items import TOPIC as REGISTRY
from cloud.services.base import Cloud
from cloud.standing import patiently, until_refused
from cloud.store.events import EVERY
from cloud.store.sql import Sql
from cloud.tenants import ROLES_AT
from cloud.web.closing import farewell, first_of
from cloud.web.site import status_of
from rpc.guard import identity_of
from schema.errors import MachineError

PRESENCE: Final = 20.0  # seconds between two notes that a connected machine is there; a third of cloud.online.SILENCE
MAX_PLATFORM: Final = 40  # characters
MAX_TAG: Final = 60
MAX_TAGS: Final = 30
MAX_REPORT: Final = 64 * 1024  # bytes
MAX_LIVE: Final = 512 * 1024  # bytes; machines send less
REPORTED: Final = frozenset(
    {
        *("host", "os", "platform", "version", "address", "state", "revision", "rejected"),
        *("ready", "unhealthy", "waiting", "problems"),
    }
)
"""What is kept of a report."""


class Push:
    """The endpoint; one task for each connected machine."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def serve(self, socket: WebSocket) -> None:
        """Serve one machine until it goes away, or its key or part does."""
        author = author_of(identity_of(socket.scope))
        subject = socket.query_params.get("part", "")

        def allowed(sql: Sql) -> None:
            require(sql, author, Role.MACHINE, Of.PART, subject)

        def reported(sql: Sql) -> Mapping[str, Any]:
            allowed(sql)
            return part(sql, subject).reported

        try:
            known = await self._cloud.store.read(reported)
            computer = _computer(socket.query_params)
            if any(known.get(key) != value for key, value in computer.items()):
                # before it is told anything: which packages it gets depends on it
                await self._cloud.store.write(lambda sql: _note(sql, subject, computer, self._cloud.clock()))
            with self._cloud.openings.one(f"the part {subject}", FOLLOWERS):
                await self._served(socket, author, subject, allowed)
        except MachineError as error:
            await socket.send_denial_response(PlainTextResponse(str(error), status_of(error)))

    async def _served(self, socket: WebSocket, author: Author, subject: str, allowed: Callable[[Sql], None]) -> None:
        await socket.accept()
        refused: list[MachineError] = []
        try:
            async with trio.open_nursery() as nursery:

                async def watch() -> None:
                    refused.append(await until_refused(self._cloud, author, allowed))
                    nursery.cancel_scope.cancel()

                nursery.start_soon(watch)
                nursery.start_soon(self._tell, socket, subject)
                nursery.start_soon(self._look, socket, subject)
                nursery.start_soon(self._stay, subject)
                await self._hear(socket, subject)
                nursery.cancel_scope.cancel()
        except* (WebSocketDisconnect, trio.BrokenResourceError, trio.ClosedResourceError):
            refused.clear()  # it went away while something was sent
        except* MachineError as group:
            refused.append(first_of(group))
        if refused:
            await socket.close(*farewell(refused[0]))

    async def _tell(self, socket: WebSocket, subject: str) -> None:
        store, events = self._cloud.store, self._cloud.events
        organization = (await patiently(lambda: store.read(lambda sql: part(sql, subject)))).organization_id
        sent: Mapping[str, Any] = {}
        changed = trio.Event()
        own_port = self._cloud.tls is not None and self._cloud.tls.own
        within: frozenset[str] = frozenset()  # where keys with roles count here, as it was read last
        elsewhere: set[str] = set()  # where roles have changed since the last reading was begun

        def read(sql: Sql) -> tuple[dict[str, Any], frozenset[str]]:
            authorities = roots(sql, subject, self._cloud.clock(), port=own_port)
            around = frozenset(one for _, one in place_of(sql, Of.PART, subject).within)
            return {**facts(sql, subject), "authorities": authorities}, around

        async def follow(topic: str, of: str) -> None:
            nonlocal changed
            with events.listening(topic, of) as news:
                changed.set()  # what happened before somebody listened
                while True:
                    await news.all()
                    changed.set()

        async def follow_roles() -> None:
            """A thousand machines are connected, and a key concerns few: the others read nothing."""
            with events.listening(ROLES_AT) as news:
                changed.set()
                while True:
                    elsewhere.update(await news.all())
                    if EVERY in elsewhere or not within.isdisjoint(elsewhere):
                        changed.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow, "part", subject)
            nursery.start_soon(follow_roles)
            nursery.start_soon(follow, "secret", subject)
            nursery.start_soon(follow, REGISTRY, "")
            nursery.start_soon(follow, AUTHORITY, organization)
            while True:
                await changed.wait()
                changed = trio.Event()
                elsewhere.clear()
                found, within = await patiently(lambda: store.read(read))
                if not within.isdisjoint(elsewhere):  # it lies elsewhere now, where something came meanwhile
                    changed.set()
                if found.pop("restart"):
                    await patiently(lambda: store.write(lambda sql: mark_restart(sql, subject, wanted=False)))
                    await socket.send_text(json.dumps({"restart": True}))
                if found != sent:
                    sent = found
                    await socket.send_text(json.dumps(found, separators=(",", ":")))

    async def _look(self, socket: WebSocket, subject: str) -> None:
        """Tell the machine for how long somebody looks at it, whenever that is longer than it knows."""
        store, clock = self._cloud.store, self._cloud.clock
        with self._cloud.events.listening("watched", subject) as news:
            while True:
                seconds = await patiently(lambda: store.read(lambda sql: watching.watched(sql, subject, clock())))
                if seconds > 0:
                    await socket.send_text(json.dumps({"watched": seconds}))
                await news.next()

    async def _stay(self, subject: str) -> None:
        """While the connection lives, the machine is there."""
        while True:
            self._cloud.seen.heard(subject, self._cloud.clock())
            await trio.sleep(PRESENCE)

    async def _hear(self, socket: WebSocket, subject: str) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            heard = _message(message.get("text") or "")
            await self._keep(subject, heard.get("report"), heard.get("live"))

    async def _keep(self, subject: str, report: Any, live: Any) -> None:
        def work(sql: Sql) -> None:
            now = self._cloud.clock()
            if isinstance(report, dict):
                note_seen(sql, subject, now, {**part(sql, subject).reported, **_report(report)})
            if isinstance(live, dict):
                watching.tell(sql, subject, live, now)

        if isinstance(report, dict) or isinstance(live, dict):
            await patiently(lambda: self._cloud.store.write(work))


def _message(text: str) -> Mapping[str, Any]:
    """What a machine said; empty for what is too long or no object."""
    if len(text) > MAX_LIVE:
        return {}
    try:
        message = json.loads(text)
        if "\\u" in text:  # perhaps half a character, such as in names of files that are no UTF-8: nothing keeps that
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict) or (len(text) > MAX_REPORT and "report" in message):
        return {}
    return message


def _computer(query: Mapping[str, str]) -> dict[str, Any]:
    """What the address tells of the computer: its platform, and tags of it."""
    platform = query.get("platform", "")[:MAX_PLATFORM]
    tags = [tag for tag in query.get("tags", "")[: MAX_TAGS * (MAX_TAG + 1)].split(",") if tag][:MAX_TAGS]
    told = {"platform": platform, **({"platform_tags": [tag[:MAX_TAG] for tag in tags]} if "tags" in query else {})}
    return told if platform else {}


def _note(sql: Sql, subject: str, computer: Mapping[str, Any], now: datetime) -> None:
    note_seen(sql, subject, now, {**part(sql, subject).reported, **computer})


def _report(report: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a report."""
    return {key: value for key, value in report.items() if key in REPORTED and isinstance(value, str | int | float)}
