"""The graph: a nursery whose children know what they need."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from nursery_graph.engine import Engine
from nursery_graph.lifecycle import USABLE
from nursery_graph.node import Node
from nursery_graph.observe import Changes
from nursery_graph.slot import Slot
from nursery_graph.status import Overdue, Snapshot, Transition

_log = logging.getLogger("nursery_graph")


class Graph:
    """Runs nodes in the order of their dependencies, and stops them in the reverse order, whatever happens.

    Say what shall run with `apply`, as often as you like; run it once with `run`::

        graph = Graph()
        graph.apply([Node("bus", bus), Node("motor", motor, requires={"bus"})])
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()

    All methods but `run`, `settled` and iteration over `changes` return at once, and may be called from any task of the
    same Trio run, nodes included.

    `shutdown_timeout` is the time in seconds within which the whole graph stops in order. If something still runs then,
    order is given up: what has not been cancelled yet is cancelled at once, and `on_overdue` is called with what runs.
    It may kill processes, write the report where it will be found, and end the process with `os._exit`. `jitter`
    returns numbers uniform in [0, 1) for the jitter of back-off.
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
        self._early: tuple[Node, ...] = ()  # applied before run
        self._begun = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the nodes until cancelled or `stop`; then stop all of them in order, and return when the last has ended.

        Stopping is the same whether `stop` was called, a cancel scope around was cancelled or reached its deadline, a
        task beside it failed, or KeyboardInterrupt was raised here or in a node: a node is cancelled only when
        everything that depends on it has ended. The cause goes on its way afterwards. Further interrupts change
        nothing.

        It never raises because of a failure of a node. As always in Trio, it cannot return while a task of a node runs:
        one that swallows cancellation, or waits for a thread that does not end, keeps it here. `on_overdue` is for
        that.

        A graph runs once: a second call raises RuntimeError.
        """
        if self._begun:
            raise RuntimeError("a Graph runs once: make a new one")
        self._begun = True
        engine = self._engine
        cause: BaseException | None = None
        async with trio.open_nursery() as nursery:
            engine.open(nursery)
            nursery.start_soon(engine.timers.run)
            self.apply(self._early)
            self._early = ()
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
                    _log.warning("interrupted again: the graph goes on stopping in order")
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
        """Stop everything in order and let `run` return. May be called at any time, also twice."""
        self._engine.close(reason)

    def apply(self, nodes: Iterable[Node]) -> None:
        """Work towards exactly these nodes from now on, whatever was applied before and however far that got.

        New nodes start, missing ones stop, changed ones restart, each with what depends on it; the rest is not
        disturbed. A changed node that waits for its next try, or rests, is tried at once. Applying the same again does
        nothing. A node that cannot work (doubled name, missing dependency, cycle) is unconfigured with the reason; the
        others go on.

        Before `run` the nodes are kept until it begins; once the graph is being stopped they are ignored.
        """
        nodes = tuple(nodes)
        if self._engine.closed.is_set():
            return
        if self._begun:
            self._engine.apply(nodes)
        else:
            self._early = nodes

    async def settled(self) -> Snapshot:
        """Return a snapshot as soon as nothing is left to do but to wait; the last one if the graph has ended.

        What may be waited for then: the time of a next try, a name that is not configured, a node that does not end.
        """
        await trio.lowlevel.checkpoint()
        engine = self._engine
        while (engine.busy or not self._begun) and not engine.board.closed:
            await engine.idle_waiters.park()
        return self.snapshot()

    def retry(self, name: str) -> None:
        """Try a failed node now and forget its past failures; one that runs is left alone. KeyError if unknown."""
        slot = self._slot(name)
        if not self._engine.closed.is_set():
            self._engine.retry(slot)

    def restart(self, name: str, reason: str) -> None:
        """Stop a node with its dependents, in order, then start them again. KeyError if unknown."""
        slot = self._slot(name)
        if not self._engine.closed.is_set():
            self._engine.restart(slot, reason)

    def value(self, name: str) -> Any:
        """What a node that is ready (or unhealthy and running) handed to `started`; KeyError otherwise."""
        slot = self._slot(name)
        if slot.phase not in USABLE or slot.instance is None:
            raise KeyError(f"node {name!r} is not ready: {slot.reason}")
        return slot.instance.value

    def snapshot(self, *, tasks: bool = False) -> Snapshot:
        """All nodes at this moment; with `tasks`, also what each of their tasks is doing, at the cost of a walk."""
        snapshot = self._engine.board.snapshot()
        if not tasks:
            return snapshot
        slots = self._engine.slots
        nodes = {name: replace(status, tasks=slots[name].task_tree()) for name, status in snapshot.nodes.items()}
        return replace(snapshot, nodes=MappingProxyType(nodes))

    def changes(self) -> Changes:
        """The snapshot now and after each change; a slow reader skips some but never the last. Ends with the graph."""
        return Changes(self._engine.board)

    def subscribe(self, callback: Callable[[Transition], None]) -> Callable[[], None]:
        """Call `callback` with every transition, in order and at once, until the function returned is called.

        It is called between two steps of the graph: it should note and return. What it raises is logged.
        """
        return self._engine.board.subscribe(callback)

    def _slot(self, name: str) -> Slot:
        try:
            return self._engine.slots[name]
        except KeyError:
            raise KeyError(f"no node is called {name!r}") from None
