"""Machines that hold the push channel of a cloud and report what they run, as real ones do, without running it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from rpc.access import PART_SECRET
from tests.e2e.cloud.process import CloudProcess
from uplink import CloudAddress, connected

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

APP = "viam.app.v1.AppService"


class Follower:
    """A machine. It reports a problem while its configuration has the revision `bad` of a fragment."""

    def __init__(self, name: str, address: CloudAddress) -> None:
        self.name = name
        self.address = address
        self.bad = ""
        self.reason = ""  # why it rejects that revision; otherwise a resource does not work
        self.revision = ""
        self._socket: WebSocketConnection | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        async with connected(self.address) as socket:
            self._socket = socket
            while True:
                message = json.loads(await socket.get_message())
                if "revision" not in message:
                    continue
                self.revision = message["revision"]
                failing = bool(self.bad) and self.revision.endswith(f"-{self.bad}")
                report = {"revision": self.revision, "state": "running", "unhealthy": int(failing), "rejected": ""}
                report |= {"rejected": self.reason, "problems": 1} if failing and self.reason else {}
                await socket.send_message(json.dumps({"report": report}))

    async def reject(self, reason: str) -> None:
        """Report that the configuration is rejected."""
        assert self._socket is not None
        report = {"revision": self.revision, "rejected": reason, "problems": 1}
        await self._socket.send_message(json.dumps({"report": report}))


@asynccontextmanager
async def followers(running: CloudProcess, names: Sequence[str], fragment: str) -> AsyncIterator[list[Follower]]:
    """Create machines that use a fragment, and let them follow while the context is open."""
    created = []
    async with running.client() as client:
        for name in names:
            robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            text = json.dumps({"fragments": [fragment]})
            await client.call(APP, "", "update_robot_part", id=part["id"], robot_config_json=text)
            url = f"http://{running.address}"
            created.append(Follower(name, CloudAddress(url, part["id"], part["id"], PART_SECRET, part["secret"])))
    async with trio.open_nursery() as nursery:
        for follower in created:
            nursery.start_soon(follower.run)
        yield created
        nursery.cancel_scope.cancel()
