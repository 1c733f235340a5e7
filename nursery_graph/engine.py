"""Carries plans out: compares what is wanted with what there is, and has the nodes take their steps."""

from __future__ import annotations

from collections.abc import Iterable

from trio.lowlevel import enable_ki_protection

from nursery_graph.lifecycle import WAITING, Phase
from nursery_graph.node import Node
from nursery_graph.plan import Wanted, difference, resolve
from nursery_graph.restart import History
from nursery_graph.slot import Slot
from nursery_graph.steps import Steps


class Engine(Steps):
    """The nodes of one graph: what is wanted, what runs, and every step between. Synchronous like the steps."""

    @enable_ki_protection
    def apply(self, nodes: Iterable[Node]) -> None:
        """Work towards `nodes` from now on."""
        desired = resolve(nodes)
        plan = difference({name: slot.wanted for name, slot in self.slots.items() if slot.wanted}, desired)
        for name in plan.removed:
            slot = self.slots[name]
            slot.wanted = None
            if slot.instance is None:
                self._forget(slot, "removed from the configuration")
            else:
                self.stop(slot.instance, "removed from the configuration")
        for name in plan.added:
            if name in self.slots:  # removed a moment ago, and still ending: what ends is not this one
                self._replace(self.slots[name], desired[name])
            else:
                slot = self.slots[name] = Slot(name, desired[name], self.slots)
                self.busy[slot] = None
                self.board.announce(name, None, slot.state, "")
        for name in plan.replaced:
            self._replace(self.slots[name], desired[name])
            self._stop_slot(name, "its configuration changed")
        for name in plan.revised:
            slot = self.slots[name]
            slot.wanted = desired[name]
            slot.failure = ""
            slot.changed()
            if slot.phase is not Phase.FINISHED:
                self._renew(slot)
        for name in plan.kept:
            self.slots[name].wanted = desired[name]
        for name, wanted in desired.items():
            if wanted.problem:
                self._stop_slot(name, wanted.problem)

        followers: dict[str, list[Slot]] = {}
        for name, wanted in desired.items():
            for other in (*wanted.requires, *wanted.uses):
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
        """Try a node that waits or rests now; one that is failing, as soon as it has ended."""
        self._renew(slot)
        self._work()

    @enable_ki_protection
    def restart(self, slot: Slot, reason: str) -> None:
        """Stop it with its dependents and start them again."""
        if slot.instance is None:
            self._renew(slot)
        else:
            self._stop_slot(slot.name, reason)
        self._work()

    def _stop_slot(self, name: str, reason: str) -> None:
        instance = self.slots[name].instance
        if instance is not None:
            self.stop(instance, reason)

    def _replace(self, slot: Slot, wanted: Wanted) -> None:
        """Give it another configuration, to which nothing that happened before applies."""
        slot.failure = ""
        self._renew(slot)
        slot.wanted = wanted

    def _renew(self, slot: Slot) -> None:
        """Past failures count no longer, and no wait for the next try."""
        slot.history = History()
        if slot.phase in WAITING:
            self._again(slot)
        elif slot.instance is not None and slot.phase in (Phase.FAILING, Phase.STOPPING):
            slot.instance.superseded = True
