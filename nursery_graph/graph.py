"""The graph: a nursery that starts and stops its children in dependency order."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from nursery_graph.execution.engine import Engine
from nursery_graph.execution.slot import Slot
from nursery_graph.lifecycle import USABLE
from nursery_graph.node import Node
from nursery_graph.observe import Changes
from nursery_graph.status import Overdue, Snapshot, Transition

_log = logging.getLogger("nursery_graph")


class Graph:
    """Run nodes in the order of their dependencies and stop them in the reverse order, whatever happens.

    Set the nodes with `apply`, as often as you like; run the graph once with `run`::

        graph = Graph()
        graph.apply([Node("bus", bus), Node("motor", motor, requires={"bus"})])
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()

    All methods except `run`, `settled` and iteration over `changes` return at once, and may be called from any task of
    the same Trio run, nodes included.

    `shutdown_timeout` is the time in seconds within which the whole graph stops in order. After it, all nodes that
    still run are cancelled at once, and `on_overdue` is called with their task trees: it may kill processes, write a
    report and end the process with `os._exit`. `jitter` returns numbers uniform in [0, 1) for the jitter of back-off.
    """

    def __init__(
        self,
        *,
        shutdown_timeout: float = 60.0,
        on_overdue: Callable[[Overdue], None] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not shutdown_timeout > 0:
            raise ValueError(f"shutdown_timeout is {shutdown_timeout}: use a positive number of seconds")
        self._shutdown_timeout = shutdown_timeout
        self._on_overdue = on_overdue
        self._engine = Engine(jitter)
        self._initial_nodes: tuple[Node, ...] = ()  # applied before run
        self._begun = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the nodes until cancelled or `stop`; then stop all of them in order and return when the last has ended.

        The order is kept whether `stop` was called, an enclosing cancel scope was cancelled or reached its deadline, a
        sibling task failed, or KeyboardInterrupt was raised here or in a node: a node is cancelled only when everything
        that depends on it has ended. The cancellation or exception is raised afterwards. Further interrupts change
        nothing.

        A failure of a node is never raised here. As always in Trio, `run` cannot return while a task of a node runs: a
        task that swallows cancellation, or waits for a thread that does not end, blocks it. Handle that in
        `on_overdue`.

        A graph runs once: a second call raises RuntimeError.
        """
        if self._begun:
            raise RuntimeError("a Graph runs only once: create a new one")
        self._begun = True
        engine = self._engine
        cause: BaseException | None = None
        async with trio.open_nursery() as nursery:
            engine.open(nursery)
            nursery.start_soon(engine.timers.run)
            self.apply(self._initial_nodes)
            self._initial_nodes = ()
            task_status.started()
            try:
                await engine.closed.wait()
            except BaseException as exc:
                cause = exc
            await self._shut_down("the graph is being stopped")
        if cause is None:
            cause = engine.interrupt
        if cause is not None:
            raise cause

    @enable_ki_protection
    async def _shut_down(self, reason: str) -> None:
        engine = self._engine
        limit = engine.timers.at(trio.current_time() + self._shutdown_timeout, self._give_up_order)
        engine.close(reason)
        with trio.CancelScope(shield=True):
            while not engine.emptied.is_set():
                try:
                    await engine.emptied.wait()
                except KeyboardInterrupt:
                    _log.warning("interrupted again: the graph continues to stop in order")
            limit.cancel()
            engine.timers.close()
            await engine.timers.ended.wait()
        engine.board.close()
        engine.idle_waiters.unpark_all()

    @enable_ki_protection
    def _give_up_order(self) -> None:
        engine = self._engine
        running = {instance.slot.name: instance.slot.task_tree() for instance in engine.instances}
        for instance in tuple(engine.instances):
            engine.cancel(instance)
        overdue = Overdue(MappingProxyType(running))
        _log.error("the graph did not stop within %g s; still running:\n%s", self._shutdown_timeout, overdue)
        if self._on_overdue is not None:
            try:
                self._on_overdue(overdue)
            except Exception:
                _log.exception("on_overdue failed")

    def stop(self, reason: str = "stop() was called") -> None:
        """Stop all nodes in order and let `run` return. May be called at any time and more than once."""
        self._engine.close(reason)

    def apply(self, nodes: Iterable[Node]) -> None:
        """Make `nodes` the complete desired state, replacing any earlier one even if that was not reached yet.

        New nodes start, missing ones stop, changed ones restart, each with its dependents; the rest is not disturbed. A
        changed node that is backing off or resting restarts at once. Applying the same nodes again does nothing. A node
        that cannot start (duplicate name, missing dependency, cycle) is unconfigured with the reason; the others go on.

        Nodes applied before `run` start when it begins; once the graph is stopping, `apply` is ignored.
        """
        nodes = tuple(nodes)
        if self._engine.closed.is_set():
            return
        if self._begun:
            self._engine.apply(nodes)
        else:
            self._initial_nodes = nodes

    async def settled(self) -> Snapshot:
        """Wait until the graph has nothing left to do and return a snapshot; the last one if the graph has ended.

        Nodes may still wait for a retry, for a name that is not configured or for a node that does not end.
        """
        await trio.lowlevel.checkpoint()
        engine = self._engine
        while (engine.busy or not self._begun) and not engine.board.closed:
            await engine.idle_waiters.park()
        return self.snapshot()

    def retry(self, name: str) -> None:
        """Restart a failed node now and clear its failure history; leave a running one alone. KeyError if unknown."""
        slot = self._slot(name)
        if not self._engine.closed.is_set():
            self._engine.retry(slot)

    def restart(self, name: str, reason: str) -> None:
        """Stop a node with its dependents, in order, then start them again. KeyError if unknown."""
        slot = self._slot(name)
        if not self._engine.closed.is_set():
            self._engine.restart(slot, reason)

    def value(self, name: str) -> Any:
        """Return the value that a ready (or unhealthy but running) node passed to `started`; KeyError otherwise."""
        slot = self._slot(name)
        if slot.phase not in USABLE or slot.instance is None:
            raise KeyError(f"node {name!r} is not ready: {slot.reason}")
        return slot.instance.value

    def snapshot(self, *, tasks: bool = False) -> Snapshot:
        """Return the current status of all nodes; with `tasks`, including their task trees, at the cost of a walk."""
        snapshot = self._engine.board.snapshot()
        if not tasks:
            return snapshot
        slots = self._engine.slots
        nodes = {name: replace(status, tasks=slots[name].task_tree()) for name, status in snapshot.nodes.items()}
        return replace(snapshot, nodes=MappingProxyType(nodes))

    def changes(self) -> Changes:
        """Iterate over snapshots: now and after each change, until the graph ends. A slow reader gets the last one."""
        return Changes(self._engine.board)

    def subscribe(self, callback: Callable[[Transition], None]) -> Callable[[], None]:
        """Call `callback` with every transition, in order and at once, until the returned function is called.

        It is called between two steps of the graph, so it should return quickly. Exceptions that it raises are logged.
        """
        return self._engine.board.subscribe(callback)

    def _slot(self, name: str) -> Slot:
        try:
            return self._engine.slots[name]
        except KeyError:
            raise KeyError(f"no node is called {name!r}") from None
