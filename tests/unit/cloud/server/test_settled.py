"""Work of machine-cloud between opening its port and reporting that it is ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cloud.server import app
from nursery_graph import State


class Changes:
    """A fixed sequence of snapshots of a graph."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self._nodes = iter(nodes)

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Any:
        return SimpleNamespace(nodes=next(self._nodes))


@pytest.mark.parametrize(
    ("state", "expected"), [(State.READY, ["collect", "freeze", "threshold"]), (State.UNHEALTHY, [])]
)
async def test_loaded_objects_are_frozen_for_the_garbage_collector(
    state: State, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    collector = SimpleNamespace(
        collect=lambda: done.append("collect"),
        freeze=lambda: done.append("freeze"),
        set_threshold=lambda *_: done.append("threshold"),
    )
    monkeypatch.setattr(app, "gc", collector)

    port = SimpleNamespace(state=state, reason="it is taken")
    graph = SimpleNamespace(changes=lambda: Changes([{}, {"port": port}]), stop=lambda reason: None)
    cloud: Any = SimpleNamespace(graph=graph, first=None, options=SimpleNamespace(ready_fd=None))
    await app._announce(cloud)
    assert done == expected
