"""The push channel: a machine hears of its configuration within moments, and tells how it is.

`/machine/v1/follow?part=ID`, a WebSocket with a token in `authorization`. The cloud sends a JSON object whenever what
it says has changed, beginning at once: `revision`, `document`, `cloud`, `keys` (see cloud.facts), and `restart` when
somebody asked for one, once. The machine sends `{"report": {...}}`; reports are kept and shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import trio
from starlette.websockets import WebSocket, WebSocketDisconnect

from cloud.access import Of, Role, require
from cloud.author import Author
from cloud.facts import facts
from cloud.machines import mark_restart, note_seen, part
from cloud.services.base import Cloud
from rpc.guard import identity_of
from schema.errors import MachineError

PRESENCE: Final = 20.0  # seconds between two notes that a connected machine is there; a third of cloud.online.SILENCE
REFUSED: Final = 4403  # close code: private use, after HTTP's 403
GONE: Final = 4404
MAX_REPORT: Final = 64 * 1024  # bytes
REPORTED: Final = frozenset({"host", "os", "platform", "version", "address", "state", "ready", "unhealthy", "revision"})
"""What is kept of a report."""


class Push:
    """The endpoint; one task for each connected machine."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def serve(self, socket: WebSocket) -> None:
        """Serve one machine until it goes away."""
        identity = identity_of(socket.scope)
        subject = socket.query_params.get("part", "")
        try:
            author = Author(identity.kind, identity.entity) if identity is not None else Author("", "")
            await self._cloud.store.read(lambda sql: require(sql, author, Role.MACHINE, Of.PART, subject))
        except MachineError as error:
            await socket.close(REFUSED, str(error))
            return
        await socket.accept()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tell, socket, subject)
                nursery.start_soon(self._stay, subject)
                await self._hear(socket, subject)
                nursery.cancel_scope.cancel()
        except* (WebSocketDisconnect, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it went away while something was sent
        except* MachineError:
            await socket.close(GONE, "the part was deleted")

    async def _tell(self, socket: WebSocket, subject: str) -> None:
        store, events = self._cloud.store, self._cloud.events
        sent: Mapping[str, Any] = {}
        changed = trio.Event()

        async def follow(topic: str, of: str) -> None:
            nonlocal changed
            with events.listening(topic, of) as news:
                changed.set()  # what happened before somebody listened
                while True:
                    await news.all()
                    changed.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow, "part", subject)
            nursery.start_soon(follow, "key", "")
            while True:
                await changed.wait()
                changed = trio.Event()
                found = await store.read(lambda sql: facts(sql, subject))
                if found.pop("restart"):
                    await store.write(lambda sql: mark_restart(sql, subject, wanted=False))
                    await socket.send_text(json.dumps({"restart": True}))
                if found != sent:
                    sent = found
                    await socket.send_text(json.dumps(found, separators=(",", ":")))

    async def _stay(self, subject: str) -> None:
        """While the connection lives, the machine is there."""
        while True:
            await self._cloud.store.write(lambda sql: note_seen(sql, subject, self._cloud.clock()))
            await trio.sleep(PRESENCE)

    async def _hear(self, socket: WebSocket, subject: str) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text") or ""
            report = _report(text) if len(text) <= MAX_REPORT else None
            if report is not None:
                await self._cloud.store.write(
                    lambda sql, told=report: note_seen(  # type: ignore[misc]
                        sql, subject, self._cloud.clock(), {**part(sql, subject).reported, **told}
                    )
                )


def _report(text: str) -> dict[str, Any] | None:
    """What is kept of a message; None for what is no report."""
    try:
        message = json.loads(text)
    except ValueError:
        return None
    report = message.get("report") if isinstance(message, dict) else None
    if not isinstance(report, dict):
        return None
    return {key: value for key, value in report.items() if key in REPORTED and isinstance(value, str | int | float)}
