"""Five services in one graph. Run it, and press Ctrl-C to see them stop in order."""

import trio

from nursery_graph import Graph, Node


async def service(deps, *, task_status):
    """Run one service from start to stop."""
    task_status.started("a connection")  # ready; dependents find this value in their deps
    try:
        await trio.sleep_forever()  # serve
    finally:
        with trio.move_on_after(1, shield=True):
            await trio.sleep(0.2)  # clean up; everything in deps is still running


nodes = [
    Node("web", service, requires={"shop", "sessions"}),
    Node("shop", service, requires={"database"}, uses={"mail"}),
    Node("sessions", service, requires={"cache"}),
    Node("cache", service),
    Node("database", service),
]

if __name__ == "__main__":
    graph = Graph()
    graph.subscribe(lambda event: print(f"{event.name:9} {event.after.value:13} {event.reason}"))
    graph.apply(nodes)
    trio.run(graph.run)
