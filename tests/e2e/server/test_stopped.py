"""A machine-server that was stopped for longer than its clients' window (SIGSTOP) gives none of them up for that."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import trio

from rpc.api.client import ApiClient
from tests.e2e.server.process import server

ROBOT = "viam.robot.v1.RobotService"


async def beat(client: ApiClient, session: str) -> None:
    while True:
        await client.call(ROBOT, "", "send_session_heartbeat", id=session)
        await trio.sleep(0.06)  # a fifth of the window, as clients do


async def test_sessions_of_living_clients_survive(tmp_path: Path) -> None:
    document = {"network": {"sessions": {"heartbeat_window": "300ms"}}}
    async with server(tmp_path, document, running=True) as running, running.client() as client:
        assert running.process is not None
        session = (await client.call(ROBOT, "", "start_session"))["id"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, client, session)
            for _ in range(3):
                await trio.sleep(0.1)
                os.kill(running.process.pid, signal.SIGSTOP)
                await trio.sleep(0.8)
                os.kill(running.process.pid, signal.SIGCONT)
            await trio.sleep(0.4)  # a window in which a late deadline would still end it
            nursery.cancel_scope.cancel()
        await client.call(ROBOT, "", "send_session_heartbeat", id=session)
