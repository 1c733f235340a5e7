"""Removal of the files of modules that are no longer configured: data folders and unpacked archives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from engine.planning import INTERNAL
from nursery_graph import Graph, Node, Restart
from runtime.programs import install
from telemetry.logs.logger_names import MODULES

NODE: Final = f"{INTERNAL}module-tidy"


class Tidy:
    """Removes the files of a removed module after it has stopped, unless it is configured again."""

    def __init__(self, graph: Graph, environment: Mapping[str, str]) -> None:
        self._graph = graph
        self._environment = environment
        self._data = Path()
        self._removed: dict[str, str] = {}  # names of nodes, by names of modules
        self._news = trio.Event()

    def plan(self, removed: Mapping[str, str], configured: Collection[str], data: Path) -> None:
        """Schedule the removal of files.

        `removed` maps the names of removed modules to their nodes, `configured` are the configured modules, and `data`
        is the parent of the data folders.
        """
        self._data = data
        self._removed |= removed
        for name in self._removed.keys() & set(configured):
            del self._removed[name]
        if self._removed:
            self._news.set()

    def node(self) -> Node:
        """Return the node that removes the files."""
        return Node(NODE, self._run, restart=Restart(kind="permanent", intensity=1_000_000, max_delay=30.0))

    async def _run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        log = structlog.get_logger(MODULES)
        while True:
            await self._news.wait()
            self._news = trio.Event()
            async for snapshot in self._graph.changes():
                for name in [name for name, node in self._removed.items() if node not in snapshot.nodes]:
                    del self._removed[name]
                    await install.remove(name, self._data, self._environment)
                    log.info("the files of a removed module were deleted", module=name, folder=str(self._data / name))
                if not self._removed:
                    break
