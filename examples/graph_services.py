"""Five services in one graph. Run it, and press Ctrl-C to see them stop in order."""

from collections.abc import Mapping
from typing import Any

import trio

from nursery_graph import Graph, Node, Transition


async def service(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[str]) -> None:
    """Live: the whole life of one service is one function."""
    await trio.sleep(0.2)  # connect to whatever is in deps
    task_status.started("a connection")
    try:
        await trio.sleep_forever()  # serve
    finally:
        with trio.move_on_after(1, shield=True):
            await trio.sleep(0.2)  # say goodbye, while everything in deps still lives


def show(event: Transition) -> None:
    """Print what happens."""
    print(f"{event.name:9} {event.after.value if event.after else 'gone':13} {event.reason}")


nodes = [
    Node("web", service, requires={"shop", "sessions"}),
    Node("shop", service, requires={"database"}, uses={"mail"}),
    Node("sessions", service, requires={"cache"}),
    Node("cache", service),
    Node("database", service),
]

if __name__ == "__main__":
    graph = Graph()
    graph.subscribe(show)
    graph.apply(nodes)
    trio.run(graph.run)
