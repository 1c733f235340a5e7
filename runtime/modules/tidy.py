"""What removed modules leave behind is removed: their data folders, what was unpacked of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from nursery_graph import Graph, Node, Restart
from runtime.machine import INTERNAL
from runtime.modules import install
from telemetry.names import MODULES

NODE: Final = f"{INTERNAL}module-tidy"


class Tidy:
    """Waits until a removed module has stopped, then removes what it left, unless it is configured again."""

    def __init__(self, graph: Graph, environment: Mapping[str, str]) -> None:
        self._graph = graph
        self._environment = environment
        self._data = Path()
        self._gone: dict[str, str] = {}  # names of nodes, by names of modules
        self._news = trio.Event()

    def plan(self, gone: Mapping[str, str], wanted: Collection[str], data: Path) -> None:
        """These modules were removed now; those are configured; the data folders are in `data`."""
        self._data = data
        self._gone |= gone
        for name in self._gone.keys() & set(wanted):
            del self._gone[name]
        if self._gone:
            self._news.set()

    def node(self) -> Node:
        """The node that does it."""
        return Node(NODE, self._run, restart=Restart(kind="permanent", intensity=1_000_000, max_delay=30.0))

    async def _run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        log = structlog.get_logger(MODULES)
        while True:
            await self._news.wait()
            self._news = trio.Event()
            async for snapshot in self._graph.changes():
                for name in [name for name, node in self._gone.items() if node not in snapshot.nodes]:
                    del self._gone[name]
                    await install.remove(name, self._data, self._environment)
                    log.info("what a removed module kept was removed", module=name, folder=str(self._data / name))
                if not self._gone:
                    break
