"""The system configuration of machine-agent as a program of its own: settings from a file, the cloud is another file.

While /root/offline exists, the cloud cannot be reached.
"""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from agent.configure.configuration import SystemConfigurator
from agent.control.settings import SettingsState
from agent.folders import prepare
from agent.layout import Layout
from agent.maintenance.decide import MaintenanceVerdict
from agent.supervise.systemd import has_systemd
from nursery_graph import Graph
from support.worker import Worker
from telemetry.logs.loggers import configure_logs
from telemetry.logs.outbox_sink import OutboxSink
from telemetry.logs.sinks import ConsoleSink

ROOT: Final = "/var/lib/machine-agent"
"""Folder of the agent: /opt/machine is the source of the project here."""
SETTINGS: Final = Path("/root/settings.json")
RECEIVED: Final = Path("/root/received")
STATE: Final = Path("/root/state.json")
OFFLINE: Final = Path("/root/offline")


class Always:
    """Maintenance that is always allowed."""

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        await trio.lowlevel.checkpoint()
        return MaintenanceVerdict(True, "nothing forbids it", waiting_since, None)


async def upload(sink: OutboxSink) -> None:
    """Append entries to a file, and print each: with the identifier of the agent, this would be a loop."""
    while True:
        batch = await sink.next()
        if OFFLINE.exists():
            await trio.sleep_forever()
        with RECEIVED.open("ab") as file:  # noqa: ASYNC230 - nothing else runs in this program
            file.writelines(msgspec.json.encode(entry) + b"\n" for entry in batch.entries)
            file.flush()
            os.fsync(file.fileno())
        print(f"uploaded {len(batch.entries)}", flush=True)
        sink.acknowledge(batch.last)


async def main() -> None:
    """Run until SIGTERM. Writes problems and files to STATE when they change."""
    layout = Layout(Path(ROOT))
    prepare(layout)
    configure_logs([ConsoleSink()])
    worker = Worker("settings")
    async with worker.opened():
        settings = SettingsState(Path("/root/defaults.json"), SETTINGS, worker.run)
        await settings.load()
        configurator = SystemConfigurator(layout, settings, Always(), upload, enabled=has_systemd())
        async with trio.open_nursery() as nursery:
            graph = Graph()
            graph.apply(configurator.nodes())
            nursery.start_soon(graph.run)
            await nursery.start(_end_on_signal, nursery.cancel_scope)
            shown = ""
            while True:
                state = json.dumps(
                    {
                        "files": configurator.report().files,
                        "outcome": configurator.report().outcome,
                        "problems": [problem.message for problem in configurator.problems],
                    }
                )
                if state != shown:
                    await worker.run(partial(STATE.write_text, state))
                    shown = state
                await trio.sleep(0.1)


async def _end_on_signal(scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        task_status.started()
        await anext(signals)
        scope.cancel()


if __name__ == "__main__":
    trio.run(main)
