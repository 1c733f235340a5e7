"""Carry plans out: compare the desired nodes with the running ones and trigger the steps of each node."""

from __future__ import annotations

from collections.abc import Iterable

from trio.lowlevel import enable_ki_protection

from nursery_graph.execution.slot import Slot
from nursery_graph.execution.steps import Steps
from nursery_graph.lifecycle import WAITING, Phase
from nursery_graph.node import Node
from nursery_graph.plan import ResolvedNode, difference, resolve
from nursery_graph.restart import History


class Engine(Steps):
    """The nodes of one graph, desired and running, and every step between the two. Synchronous, like Steps."""

    @enable_ki_protection
    def apply(self, nodes: Iterable[Node]) -> None:
        """Make `nodes` the desired state and start working towards it."""
        resolved = resolve(nodes)
        plan = difference({name: slot.desired for name, slot in self.slots.items() if slot.desired}, resolved)
        for name in plan.removed:
            slot = self.slots[name]
            slot.desired = None
            if slot.instance is None:
                self._forget(slot, "removed from the configuration")
            else:
                self.stop(slot.instance, "removed from the configuration")
        for name in plan.added:
            if name in self.slots:  # removed before and still ending: it must not count as the new node
                self._replace(self.slots[name], resolved[name])
            else:
                slot = self.slots[name] = Slot(name, resolved[name], self.slots)
                self.busy[slot] = None
                self.board.announce(name, None, slot.state, "")
        for name in plan.replaced:
            self._replace(self.slots[name], resolved[name])
            self._stop_slot(name, "its configuration changed")
        for name in plan.revised:
            slot = self.slots[name]
            slot.desired = resolved[name]
            slot.failure = ""
            slot.changed()
            if slot.phase is not Phase.FINISHED:
                self._renew(slot)
        for name in plan.kept:
            self.slots[name].desired = resolved[name]
        for name, node in resolved.items():
            if node.problem:
                self._stop_slot(name, node.problem)

        followers: dict[str, list[Slot]] = {}
        for name, node in resolved.items():
            for other in (*node.requires, *node.uses):
                followers.setdefault(other, []).append(self.slots[name])
        self._followers = {name: tuple(slots) for name, slots in followers.items()}
        for slot in self.slots.values():
            if slot.phase is Phase.IDLE:
                slot.settled = False
                self._consider(slot)
        self.board.touch()
        self._work()

    @enable_ki_protection
    def retry(self, slot: Slot) -> None:
        """Restart a waiting or resting node now; a failing one as soon as it has ended."""
        self._renew(slot)
        self._work()

    @enable_ki_protection
    def restart(self, slot: Slot, reason: str) -> None:
        """Stop a node with its dependents and start them again."""
        if slot.instance is None:
            self._renew(slot)
        else:
            self._stop_slot(slot.name, reason)
        self._work()

    def _stop_slot(self, name: str, reason: str) -> None:
        instance = self.slots[name].instance
        if instance is not None:
            self.stop(instance, reason)

    def _replace(self, slot: Slot, desired: ResolvedNode) -> None:
        """Set another configuration; the failures of the previous one no longer count."""
        slot.failure = ""
        self._renew(slot)
        slot.desired = desired

    def _renew(self, slot: Slot) -> None:
        """Clear the failure history and any back-off."""
        slot.history = History()
        if slot.phase in WAITING:
            self._make_idle(slot)
        elif slot.instance is not None and slot.phase in (Phase.FAILING, Phase.STOPPING):
            slot.instance.superseded = True
