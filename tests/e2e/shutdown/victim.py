"""A process with a random graph of 200 nodes, some of them faulty; writes events to a file, one line of JSON each.

Usage: python -m tests.e2e.shutdown.victim FILE SEED DEADLINE. It prints `ready` when the graph is up. SIGTERM and
Ctrl-C stop it; so does DEADLINE, in seconds after it is ready, unless it is 0.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

import trio

from nursery_graph import Graph, Node, Restart, Snapshot, State, Transition

SIZE = 200
HUNG, CRASHING, THREAD = "n60", "n90", "n120"  # each has dependents and dependencies
STOP_TIMEOUT = 0.5
THREAD_SECONDS = 3.0


def write(file: IO[str], what: str, **fields: Any) -> None:
    file.write(json.dumps({"at": time.monotonic(), "what": what, **fields}) + "\n")
    file.flush()


def build(file: IO[str], seed: int) -> list[Node]:
    draw = random.Random(seed)

    def make(name: str, requires: set[str]) -> Node:
        async def run(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[str]) -> None:
            write(file, "begin", name=name)
            await trio.sleep(draw.uniform(0, 0.01))
            task_status.started(name)
            try:
                if name == CRASHING:
                    await trio.sleep(0.02)
                    raise RuntimeError("crashing, as always")
                if name == THREAD:
                    await trio.to_thread.run_sync(released.wait, THREAD_SECONDS)  # ignores cancellation
                else:
                    await trio.sleep_forever()
            except trio.Cancelled:
                write(file, "cancelled", name=name)
                raise
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(THREAD_SECONDS if name == HUNG else draw.uniform(0, 0.005))
                write(file, "end", name=name)

        patient = Restart(first_delay=0.05, max_delay=0.2, intensity=10_000)
        return Node(name, run, requires, stop_timeout=STOP_TIMEOUT, restart=patient)

    nodes = []
    for number in range(SIZE):
        requires = {f"n{draw.randrange(number)}" for _ in range(draw.randrange(4))} if number else set()
        # The crashing node is a dependency of some nodes, but not of the other faulty nodes.
        if f"n{number}" in (HUNG, THREAD):
            requires = {"n1", "n2"}
        write(file, "node", name=f"n{number}", requires=sorted(requires))
        nodes.append(make(f"n{number}", requires))
    return nodes


def up(snapshot: Snapshot) -> bool:
    """Return whether all nodes are ready except the crashing one, which has crashed, and its dependents."""
    shaky = {CRASHING}
    for status in snapshot.nodes.values():
        if status.requires & shaky:
            shaky.add(status.name)
    return snapshot[CRASHING].runs > 1 and all(
        status.state is State.READY for name, status in snapshot.nodes.items() if name not in shaky
    )


async def terminate_on_sigterm(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def main(file: IO[str], seed: int, deadline: float) -> None:
    def note(event: Transition) -> None:
        after = event.after and event.after.value
        write(file, "transition", name=event.name, after=after, reason=event.reason)

    graph = Graph(shutdown_timeout=20)
    graph.subscribe(note)
    graph.apply(build(file, seed))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(terminate_on_sigterm, nursery.cancel_scope)
        await nursery.start(graph.run)
        async for snapshot in graph.changes():
            if up(snapshot):
                break
        write(file, "ready")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if deadline:
            nursery.cancel_scope.deadline = trio.current_time() + deadline
            await trio.sleep_forever()
    write(file, "graph has ended", overdue=[])


released = threading.Event()  # never set: the thread ends by its own limit

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
    status = 0
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        try:
            trio.run(main, out, int(sys.argv[2]), float(sys.argv[3]))
        except* KeyboardInterrupt:  # alone or in a group, depending on where it is raised
            write(out, "interrupted")
            status = 130
        finally:
            write(out, "left")
    sys.exit(status)
