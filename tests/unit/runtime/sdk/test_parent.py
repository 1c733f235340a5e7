"""How a module notices the end of its machine. Real sockets, hence real time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from rpc.call import ServerCore
from rpc.network.listeners import open_listeners, open_unix_listener
from rpc.server.port import serve
from runtime.sdk.parent import RECONNECT_INTERVAL, dial


class Machine:
    """A server at an address."""

    def __init__(self, folder: Path, *, tcp: bool) -> None:
        self.address = str(folder / "parent.sock")
        self._tcp = tcp
        self.core = ServerCore({})

    async def run(self, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        if self._tcp:
            listeners = await open_listeners(self.address if ":" in self.address else "127.0.0.1:0")
            self.address = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        else:
            listeners = [await open_unix_listener(Path(self.address))]
        self.core = ServerCore({})
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve, listeners, self.core))
                task_status.started(scope)
                await trio.sleep_forever()


@pytest.mark.slow
@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_a_machine_that_has_ended_is_noticed_and_one_that_comes_back_in_time_is_not(
    tmp_path: Path, tcp: bool
) -> None:
    machine = Machine(tmp_path, tcp=tcp)
    noticed = trio.Event()
    async with trio.open_nursery() as nursery:
        scope: trio.CancelScope = await nursery.start(machine.run)
        async with dial(machine.address) as (channel, gone):

            async def watch() -> None:
                await gone()
                noticed.set()

            nursery.start_soon(watch)
            with trio.fail_after(30):
                first = await channel.connection()
                first.close()  # lost, but the machine is still there
                await first.ended.wait()
                while channel.statistics.connections != 2:  # noqa: ASYNC110 - nothing tells
                    await trio.sleep(0.01)
            assert not noticed.is_set()
            scope.cancel()
            with trio.fail_after(30 + RECONNECT_INTERVAL):
                await noticed.wait()
        nursery.cancel_scope.cancel()
