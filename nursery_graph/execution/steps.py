"""The steps of single nodes. Every function here is synchronous, except the tasks in which the nodes run.

There are no locks and no levels. Each event (ready, failed, ended, timeout) affects only the instances linked to the
one where it occurred. Nodes that it allows to start are put on a queue, which is processed before control returns.
"""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from nursery_graph.execution.current_node import enter
from nursery_graph.execution.failure import describe, is_interrupt
from nursery_graph.execution.slot import Instance, Slot
from nursery_graph.execution.timers import Timers
from nursery_graph.lifecycle import RUNNING, USABLE, Event, Phase, step
from nursery_graph.observe import Board
from nursery_graph.restart import after_failure

_MAX_EXTENSIONS: Final = 3  # consecutive extensions of a start timeout because the whole process was suspended


class Steps:
    """The nodes of one graph, and every step of a node from its start to its end.

    `draw` returns random numbers, uniform in [0, 1), for the back-off.
    """

    def __init__(self, draw: Callable[[], float]) -> None:
        self.slots: dict[str, Slot] = {}
        self.board = Board(self.slots)
        self.timers = Timers()
        self.instances: dict[Instance, None] = {}
        self.interrupt: BaseException | None = None  # a KeyboardInterrupt raised in the code of a node
        self.closed = trio.Event()
        self.emptied = trio.Event()  # closed, and no instance is left
        self.idle_waiters = trio.lowlevel.ParkingLot()
        self.busy: dict[Slot, None] = {}
        self._draw = draw
        self._followers: dict[str, tuple[Slot, ...]] = {}  # the nodes that require or use a name
        self._todo: deque[Slot] = deque()
        self._working = False
        self._nursery: trio.Nursery | None = None
        # Nodes inherit the context of Graph.run, not that of the task in which their dependency became ready.
        self._context = contextvars.Context()

    def open(self, nursery: trio.Nursery) -> None:
        """Run the nodes in `nursery` from now on."""
        self._nursery = nursery
        self._context = contextvars.copy_context()

    def _consider(self, slot: Slot) -> None:
        self._todo.append(slot)

    def _consider_followers(self, slot: Slot) -> None:
        """Queue the idle nodes that wait for `slot`, which has changed: they may be able to start."""
        for follower in self._followers.get(slot.name, ()):
            if follower.phase is Phase.IDLE and follower.waits_for == slot.name:
                self._consider(follower)

    def _work(self) -> None:
        if self._working:  # an observer called apply, retry or similar: the outer call processes the queue
            return
        self._working = True
        try:
            while self._todo:
                self._start_if_possible(self._todo.popleft())
        finally:
            self._working = False
        if not self.busy:
            self.idle_waiters.unpark_all()

    def _start_if_possible(self, slot: Slot) -> None:
        if slot.phase is not Phase.IDLE or slot.desired is None or self.closed.is_set():
            return
        waits_for = "" if slot.desired.problem else next(slot.unmet(), "")
        slot.waits_for = waits_for
        if not waits_for and not slot.desired.problem:
            self._start(slot)
            return
        slot.reason = slot.desired.problem or f"waiting for {waits_for!r}"
        settled = not waits_for or (waits_for in slot.desired.requires and self.slots[waits_for].settled)
        if settled != slot.settled:
            slot.settled = settled
            if settled:
                self._consider_followers(slot)
            self._account(slot)
        self.board.touch()

    def _move(self, slot: Slot, event: Event, reason: str = "") -> None:
        before = slot.state
        slot.phase = step(slot.phase, event)
        after = slot.state
        if after is not before:
            slot.since = trio.current_time()
        slot.reason = reason
        slot.changed()
        self._account(slot)
        self.board.announce(slot.name, before, after, reason)

    def _account(self, slot: Slot) -> None:
        if slot.busy:
            self.busy[slot] = None
        else:
            self.busy.pop(slot, None)

    def _make_idle(self, slot: Slot, *, settled: bool = False) -> None:
        if slot.retry is not None:
            slot.retry.cancel()
            slot.retry = None
        slot.settled = settled
        self._move(slot, Event.RETRY)
        self._consider(slot)

    def _forget(self, slot: Slot, reason: str) -> None:
        if slot.retry is not None:
            slot.retry.cancel()
        del self.slots[slot.name]
        self._move(slot, Event.FORGET, reason)

    def _start(self, slot: Slot) -> None:
        resolved = slot.desired
        assert resolved is not None
        assert self._nursery is not None
        upstream = {}
        for name in (*resolved.requires, *resolved.uses):
            peer = self.slots.get(name)
            if peer is not None and peer.instance is not None and peer.phase in USABLE:
                upstream[name] = peer.instance
        instance = slot.instance = Instance(self, slot, resolved, upstream)
        for dependency in upstream.values():
            dependency.dependents[instance] = None
        self.instances[instance] = None
        slot.runs += 1
        self._move(slot, Event.START)
        self._limit_start(instance, slot.since, 0)
        self._context.run(self._spawn, self._nursery, instance)

    def _spawn(self, nursery: trio.Nursery, instance: Instance) -> None:
        nursery.start_soon(self._live, instance, name=f"node {instance.slot.name}")

    @enable_ki_protection
    async def _live(self, instance: Instance) -> None:
        enter(instance)
        instance.task = trio.lowlevel.current_task()
        error: BaseException | None = None
        if not instance.stopping:
            deps = MappingProxyType({name: up.value for name, up in instance.upstream.items()})
            try:
                with instance.scope:
                    await _run(instance, deps)
            except BaseException as exc:
                error = exc
        self._ended(instance, error)

    @enable_ki_protection
    def ready(self, instance: Instance, value: object) -> None:
        """Handle a call of `started` in the run of `instance`."""
        slot = instance.slot
        if slot.instance is not instance or slot.phase is not Phase.STARTING:
            return  # it is stopping, or the start timeout has passed
        instance.value = value
        self._disarm(instance)
        slot.settled = True
        slot.failure = ""
        self._move(slot, Event.STARTED, instance.resolved.note)
        instance.ready_at = slot.since
        if instance.health_problem:
            self._move(slot, Event.UNHEALTHY, instance.health_problem)
        for follower in self._followers.get(slot.name, ()):
            if follower.phase is Phase.IDLE:
                if follower.waits_for == slot.name:
                    self._consider(follower)
            elif follower.phase in (Phase.BACKING_OFF, Phase.RESTING):
                self._make_idle(follower)  # a new instance of its dependency justifies a new attempt
            elif follower.phase in RUNNING and follower.instance and slot.name not in follower.instance.upstream:
                self.stop(follower.instance, f"its optional dependency {slot.name!r} became ready")
        self._work()

    @enable_ki_protection
    def report(self, instance: Instance, problem: str) -> None:
        """Handle a health report from the run of `instance`; an empty problem means healthy."""
        if problem == instance.health_problem:
            return
        instance.health_problem = problem
        slot = instance.slot
        if slot.instance is instance and slot.phase in USABLE:
            if problem:
                self._move(slot, Event.UNHEALTHY, problem)
            else:
                self._move(slot, Event.HEALTHY, instance.resolved.note)

    @enable_ki_protection
    def stop(self, root: Instance, reason: str) -> None:
        """Stop `root` and everything that depends on it; instances without dependents are cancelled at once."""
        todo = [(root, reason)]
        while todo:
            instance, reason = todo.pop()
            if instance.stopping:
                continue
            instance.stopping = True
            if not instance.cancelled:  # once cancelled, its timer is the stop timeout
                self._disarm(instance)
            instance.slot.settled = instance.abandoned
            self._move(instance.slot, Event.STOP, reason)
            cause = reason if self.closed.is_set() or instance is not root else f"{root.slot.name!r} stops: {reason}"
            todo.extend((dependent, cause) for dependent in instance.dependents)
            if not instance.dependents:
                self.cancel(instance)

    def _disarm(self, instance: Instance) -> None:
        if instance.timer is not None:
            instance.timer.cancel()
            instance.timer = None

    def cancel(self, instance: Instance) -> None:
        """Cancel the instance and start its stop timeout."""
        if instance.cancelled or instance.ended:
            return
        instance.cancelled = True
        instance.scope.cancel(instance.slot.reason)
        limit = trio.current_time() + instance.resolved.node.stop_timeout
        instance.timer = self.timers.at(limit, lambda: self._not_ended_in_time(instance))

    def _fail(self, instance: Instance, reason: str) -> None:
        slot = instance.slot
        if not slot.failure:
            slot.failed_since = trio.current_time()
        instance.failure = slot.failure = reason
        slot.settled = True
        self._move(slot, Event.FAILED, reason)
        for dependent in tuple(instance.dependents):
            self.stop(dependent, f"{slot.name!r} failed: {reason}")
        self._consider_followers(slot)

    def _limit_start(self, instance: Instance, since: float, extensions: int) -> None:
        due = since + instance.resolved.node.start_timeout
        instance.timer = self.timers.at(due, lambda: self._not_ready_in_time(instance, due, extensions))

    @enable_ki_protection
    def _not_ready_in_time(self, instance: Instance, due: float, extensions: int) -> None:
        limit, now = instance.resolved.node.start_timeout, trio.current_time()
        if now - due > limit / 4 and extensions < _MAX_EXTENSIONS:  # the process was suspended
            self._limit_start(instance, now, extensions + 1)
            return
        place = "; ".join(instance.slot.task_tree())
        self._fail(instance, f"not ready within {limit:g} s, still running: {place}")
        self.cancel(instance)
        self._work()

    @enable_ki_protection
    def _not_ended_in_time(self, instance: Instance) -> None:
        """Report what still runs and go on without it; only the next run of the same node still waits for it."""
        slot = instance.slot
        instance.abandoned = True
        slot.overdue = slot.task_tree()
        limit = instance.resolved.node.stop_timeout
        slot.reason = f"still running {limit:g} s after it was cancelled: {'; '.join(slot.overdue)}"
        slot.settled = True
        slot.changed()
        self._account(slot)
        self.board.announce(slot.name, slot.state, slot.state, slot.reason)
        self._release(instance)
        self._consider_followers(slot)
        self._work()

    def _ended(self, instance: Instance, error: BaseException | None) -> None:
        """Handle the end of the task of `instance`."""
        instance.ended = True
        instance.task = None
        self._disarm(instance)
        slot = instance.slot
        if error is not None and is_interrupt(error):
            self.interrupt = self.interrupt or error
            self.close(f"node {slot.name!r} was interrupted: {describe(error)}")
            error = None
        if slot.phase is Phase.STOPPING:
            if error is not None:
                slot.reason += f" (its cleanup failed: {describe(error)})"
        elif not instance.failure:
            if error is not None:
                self._fail(instance, describe(error))
            elif instance.ready_at is None:
                self._fail(instance, "returned before it was ready")
            elif instance.resolved.node.restart.kind == "permanent":
                self._fail(instance, "returned although it was not asked to stop")
            else:
                instance.finished = True
                self.stop(instance, "finished")
        self._release(instance)
        self._work()

    def _release(self, first: Instance) -> None:
        """Unlink ended instances from their dependencies; cancel stopping dependencies that have no dependents left."""
        todo = [first]
        while todo:
            instance = todo.pop()
            if instance.dependents or not (instance.ended or instance.abandoned):
                continue
            for dependency in instance.upstream.values():
                dependency.dependents.pop(instance, None)
                if not dependency.dependents:
                    if dependency.ended:
                        todo.append(dependency)
                    elif dependency.stopping:
                        self.cancel(dependency)
            instance.upstream = {}
            if instance.ended:
                self._conclude(instance)

    def _conclude(self, instance: Instance) -> None:
        """Decide what happens next to the name of `instance`, which has ended with all its dependents."""
        slot = instance.slot
        slot.instance = None
        slot.overdue = ()
        self.instances.pop(instance, None)
        if self.closed.is_set() and not self.instances:
            self.emptied.set()
        if slot.phase is Phase.STOPPING:
            if slot.desired is None:
                self._forget(slot, slot.reason)
            elif instance.finished and not instance.superseded:
                slot.settled = True
                self._move(slot, Event.COMPLETE, "finished")
            else:
                slot.settled = False
                self._move(slot, Event.STOPPED, slot.reason)
                self._consider(slot)
        elif instance.superseded:
            slot.settled = False
            self._move(slot, Event.RETRY, slot.reason)
            self._consider(slot)
        else:
            self._apply_policy(slot, instance)
        self._consider_followers(slot)

    def _apply_policy(self, slot: Slot, instance: Instance) -> None:
        assert slot.desired is not None
        now = trio.current_time()
        verdict = after_failure(slot.desired.node.restart, slot.history, now, instance.ready_at, self._draw())
        slot.history = verdict.history
        if verdict.delay is None:
            self._move(slot, Event.GIVE_UP, f"{instance.failure} ({verdict.reason})")
        else:
            slot.retry = self.timers.at(now + verdict.delay, lambda: self._time_to_retry(slot))
            self._move(slot, Event.BACK_OFF, instance.failure)

    @enable_ki_protection
    def _time_to_retry(self, slot: Slot) -> None:
        self._make_idle(slot, settled=True)  # nodes that use it already run without it and do not wait
        self._work()

    @enable_ki_protection
    def close(self, reason: str) -> None:
        """Stop all nodes, dependents first, and start no more."""
        if self.closed.is_set():
            return
        self.closed.set()
        for slot in self.slots.values():
            if slot.retry is not None:
                slot.retry.cancel()
                slot.changed()
        for instance in tuple(self.instances):
            self.stop(instance, reason)
        if not self.instances:
            self.emptied.set()
        self._work()


@disable_ki_protection
async def _run(instance: Instance, deps: MappingProxyType[str, object]) -> None:
    await instance.resolved.node.run(deps, task_status=instance)
