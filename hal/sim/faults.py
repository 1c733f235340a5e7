"""Faults on purpose: a device that does not acknowledge, is gone, or is slow, by seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

import trio

from hal.errors import Fault, HalError


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """How a device misbehaves: which fault, how often (0 to 1), and how many seconds late it answers."""

    fault: Fault | None = None
    probability: float = 1.0
    delay: float = 0.0


class Faults:
    """The faults of a bench, by device name. One seed gives one sequence for each device, whatever the others do."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._plans: dict[str, tuple[FaultPlan, random.Random]] = {}

    def inject(self, name: str, plan: FaultPlan) -> None:
        """Let the device called `name` misbehave from now on."""
        self._plans[name] = plan, random.Random(f"{self._seed}:{name}")

    def clear(self, name: str) -> None:
        """Let it behave again."""
        self._plans.pop(name, None)

    async def strike(self, name: str) -> None:
        """Called on each access to a device: HalError, a delay, or nothing. A checkpoint in any case."""
        entry = self._plans.get(name)
        if entry is None:
            await trio.lowlevel.checkpoint()
            return
        plan, dice = entry
        await trio.sleep(plan.delay)
        if plan.fault is not None and dice.random() < plan.probability:
            raise HalError(f"{name}: {plan.fault.value} (injected)", plan.fault)
