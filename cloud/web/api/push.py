"""The push channel: sends a machine its configuration as soon as it changes, and receives reports.

The WebSocket `/machine/v1/follow?part=ID&platform=linux/arm64&tags=distro:debian,pi:5` needs a token in
`authorization`. The cloud sends a JSON object immediately and after every change, with `revision`, `document`, `cloud`,
`keys` and `authorities` (see cloud.services.machines.facts); `{"restart": true}` once per requested restart;
`{"watched": seconds}` when a user views the machine for that long; and `{"serve": {...}}` when a caller needs a
connection for calls (see cloud.web.api.serve). The machine sends `{"report": {...}}`; reports are stored and shown.
While it is viewed, it also sends `{"live": {...}}` about once a second: its resources and readings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import trio
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket

from cloud.domain.certificates.authorities import TOPIC as AUTHORITY
from cloud.domain.organizations.tenants import ROLES_AT
from cloud.domain.permissions.authentication import author_of
from cloud.domain.registry.items import TOPIC as REGISTRY
from cloud.services.common.base import Cloud
from cloud.services.common.standing import while_allowed
from cloud.services.machines.following import Following
from cloud.services.reverse.opening import message_of, topic
from cloud.store.events import EVERY
from cloud.values.author import LOCATION, Author
from cloud.web.common.closing import close_frame_of, first_leaf
from cloud.web.common.site import status_of
from cloud.work.openings import FOLLOWERS
from cloud.work.refreshes import Refreshes
from rpc.access import identity_of
from rpc.pages import DISCONNECTED
from schema import MachineError

PRESENCE: Final = (
    20.0  # seconds between presence records of a connected machine; a third of cloud.domain.machines.online.SILENCE
)
MAX_PLATFORM: Final = 40  # characters
MAX_TAG: Final = 60
MAX_TAGS: Final = 30
MAX_REPORT: Final = 64 * 1024  # bytes
MAX_LIVE: Final = 512 * 1024  # bytes; machines send less


class Push:
    """Endpoint of the push channel; one task per connected machine."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._refreshes = Refreshes()

    async def serve(self, socket: WebSocket) -> None:
        """Serve a machine until it disconnects or its access ends, such as when its key or part is deleted."""
        author = author_of(identity_of(socket.scope))
        subject = socket.query_params.get("part", "")

        machine = Following(self._cloud, author, subject)
        try:
            await machine.begin(_computer(socket.query_params))
            with self._cloud.openings.hold(f"the part {subject}", FOLLOWERS):
                await self._served(socket, author, subject, machine)
        except MachineError as error:
            await socket.send_denial_response(PlainTextResponse(str(error), status_of(error)))

    async def _served(self, socket: WebSocket, author: Author, subject: str, machine: Following) -> None:
        await socket.accept()
        refusal: MachineError | None = None
        disconnected = False  # during a send
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send_configurations, socket, subject, machine)
                nursery.start_soon(self._send_viewing_times, socket, subject, machine)
                nursery.start_soon(self._record_presence, subject)
                if author.type != LOCATION:  # see check_answering
                    nursery.start_soon(self._send_requests_for_calls, socket, subject)
                with while_allowed(self._cloud, author, machine.allowed):
                    await self._receive(socket, machine)
                nursery.cancel_scope.cancel()
        except* DISCONNECTED:
            disconnected = True
        except* MachineError as group:
            refusal = first_leaf(group)
        if refusal is not None and not disconnected:
            await socket.close(*close_frame_of(refusal))

    async def _send_configurations(self, socket: WebSocket, subject: str, machine: Following) -> None:
        events, organization = self._cloud.events, await machine.organization()
        sent: Mapping[str, Any] = {}
        places: frozenset[str] = frozenset()  # places whose roles count for this machine, as of the last read
        meanwhile: set[str] | None = None  # places whose roles have changed during a read

        with self._refreshes.of(organization) as refresh:

            def change(_: str) -> None:
                refresh.ask()

            def change_roles(place: str) -> None:
                """Note role changes that concern this machine: thousands are connected, but a change concerns few."""
                if place == EVERY or place in places:
                    refresh.ask()
                if meanwhile is not None:
                    meanwhile.add(place)

            # callbacks, and not tasks: with thousands of machines, each change would wake them
            own = ("part", subject), ("secret", subject), (REGISTRY, EVERY), (AUTHORITY, organization)
            with events.calling(change, *own), events.calling(change_roles, (ROLES_AT, EVERY)):
                refresh.ask()
                while True:
                    await refresh.begin()
                    meanwhile = set()
                    configuration, places = await machine.machine_data()
                    if not places.isdisjoint(meanwhile):  # moved to a place with changed roles
                        refresh.ask()
                    meanwhile = None
                    refresh.end()
                    if configuration.pop("restart"):
                        await machine.restarted()
                        await socket.send_text(json.dumps({"restart": True}))
                    if configuration != sent:
                        sent = configuration
                        await socket.send_text(json.dumps(configuration, separators=(",", ":")))

    async def _send_viewing_times(self, socket: WebSocket, subject: str, machine: Following) -> None:
        """Notify the machine for how long it is viewed, whenever that time is extended."""
        with self._cloud.events.listening("watched", subject) as news:
            while True:
                seconds = await machine.watched()
                if seconds > 0:
                    await socket.send_text(json.dumps({"watched": seconds}))
                await news.next()

    async def _send_requests_for_calls(self, socket: WebSocket, subject: str) -> None:
        cloud, sent = self._cloud, set[str]()
        with cloud.events.listening(topic(subject)) as news, cloud.reverses.following(subject):
            requests = [json.dumps(message_of(each, cloud.replica_address)) for each in cloud.reverses.awaited(subject)]
            while True:
                for request in requests:
                    if request and request not in sent:
                        await socket.send_text(f'{{"serve":{request}}}')
                sent = set(requests)
                requests = await news.all()

    async def _record_presence(self, subject: str) -> None:
        """Record the machine's presence while it is connected."""
        while True:
            self._cloud.seen.contacted(subject, self._cloud.clock())
            await trio.sleep(PRESENCE)

    async def _receive(self, socket: WebSocket, machine: Following) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            parsed = _message(message.get("text") or "")
            if parsed.get("goodbye") is True:
                await machine.end()
                return
            await machine.keep(parsed.get("report"), parsed.get("live"))


def _message(text: str) -> Mapping[str, Any]:
    """Parse a message of a machine; empty if it is too long or not a JSON object."""
    if len(text) > MAX_LIVE:
        return {}
    try:
        message = json.loads(text)
        if "\\u" in text:  # possibly a lone surrogate, as in file names that are not UTF-8, which cannot be stored
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict) or (len(text) > MAX_REPORT and "report" in message):
        return {}
    return message


def _computer(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the platform and the platform tags from the query; empty without a platform."""
    platform = query.get("platform", "")[:MAX_PLATFORM]
    tags = [tag for tag in query.get("tags", "")[: MAX_TAGS * (MAX_TAG + 1)].split(",") if tag][:MAX_TAGS]
    computer = {"platform": platform, **({"platform_tags": [tag[:MAX_TAG] for tag in tags]} if "tags" in query else {})}
    return computer if platform else {}
