"""The standard health service of a machine: what a watcher receives from start to stop, in virtual time."""

from __future__ import annotations

from typing import Any

import trio
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from runtime.server.memory import open_machine

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


class Watcher:
    """Record the stream of one Watch call."""

    identity = None

    def __init__(self, service: str) -> None:
        self.service = service
        self.seen: list[Any] = []
        self.changed = trio.Event()

    async def recv_message(self) -> HealthCheckRequest:
        return HealthCheckRequest(service=self.service)

    async def send_message(self, message: HealthCheckResponse) -> None:
        self.seen.append(message.status)
        self.changed.set()
        self.changed = trio.Event()


async def test_a_watcher_sees_the_start_and_the_stop(autojump_clock: trio.testing.MockClock) -> None:
    async with open_machine({}) as memory, trio.open_nursery() as nursery:
        handler = memory.serving.router.get("/grpc.health.v1.Health/Watch")
        assert handler is not None
        watchers = [Watcher(""), Watcher("viam.robot.v1.RobotService")]
        for watcher in watchers:
            nursery.start_soon(handler.func, watcher)
        with trio.fail_after(30):
            await memory.machine.lifecycle.running.wait()
            for watcher in watchers:
                while watcher.seen[-1:] != [SERVING]:
                    await watcher.changed.wait()
                assert watcher.seen in ([SERVING], [NOT_SERVING, SERVING])
            memory.machine.lifecycle.request_stop("test")
            for watcher in watchers:
                while watcher.seen[-1] != NOT_SERVING:
                    await watcher.changed.wait()
        nursery.cancel_scope.cancel()
