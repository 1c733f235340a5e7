"""Processes that were stopped (SIGSTOP) read received data before they act on a deadline that passed meanwhile.

A machine-server keeps the sessions of its clients, and a client accepts the reply to its call.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.http2.server import serve_http2
from tests.e2e.server.process import server
from tests.unit.rpc.echo import EchoService

ROBOT = "viam.robot.v1.RobotService"


async def beat(client: ApiClient, session: str) -> None:
    while True:
        await client.call(ROBOT, "", "send_session_heartbeat", id=session)
        await trio.sleep(0.06)  # a thirtieth of the window: this process may be late too


async def test_sessions_of_active_clients_survive(tmp_path: Path) -> None:
    document = {"network": {"sessions": {"heartbeat_window": "2s"}}}
    async with server(tmp_path, document, running=True) as running, running.client() as client:
        assert running.process is not None
        session = (await client.call(ROBOT, "", "start_session"))["id"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, client, session)
            for _ in range(2):
                await trio.sleep(0.1)
                os.kill(running.process.pid, signal.SIGSTOP)
                await trio.sleep(2.5)  # longer than the window
                os.kill(running.process.pid, signal.SIGCONT)
            await trio.sleep(2.2)  # a window in which a wrong deadline would still end it
            nursery.cancel_scope.cancel()
        await client.call(ROBOT, "", "send_session_heartbeat", id=session)


async def test_a_client_takes_the_reply_that_came_before_its_deadline() -> None:
    limit, service = 2.0, EchoService()
    core = ServerCore(service.__mapping__())
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, partial(serve_http2, core=core), [listener])
        port = str(listener.socket.getsockname()[1])
        command = [sys.executable, "-m", "tests.e2e.server.stopped_client", port, str(limit)]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            with trio.fail_after(30):
                await service.started.wait()
                begun = trio.current_time()  # the client's deadline started earlier
                os.kill(process.pid, signal.SIGSTOP)
                service.gate.set()
                await trio.sleep_until(begun + limit)
                assert core.statistics.failed_calls == core.statistics.cancelled_calls == 0  # the reply was sent
                os.kill(process.pid, signal.SIGCONT)
                assert b"".join([data async for data in process.stdout]) == b"4\n"
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
        nursery.cancel_scope.cancel()
