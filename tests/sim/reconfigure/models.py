"""Instrumented models that record every violation of a driver's life cycle in one list."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import trio

from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Attributes, Context, Extra, Resource, Started
from schema.names import API, Model


class Witness:
    """Violations and counts of one test."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.living: set[str] = set()
        self.calls = 0
        self.built: weakref.WeakSet[Resource] = weakref.WeakSet()


class Needs(Attributes):
    """Attributes of every model in this module."""

    needs: tuple[str, ...] = ()
    likes: tuple[str, ...] = ()
    value: int = 0
    start_seconds: float = 0.0
    stop_seconds: float = 0.0

    def requires(self) -> Iterable[str]:
        return self.needs

    def uses(self) -> Iterable[str]:
        return self.likes


class Traced(Resource):
    """A driver that checks at every step that it and all its dependencies are alive."""

    Config = Needs
    witness: ClassVar[Witness]

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.alive = False
        self.inside = 0
        self.witness.built.add(self)
        self._check("constructed")

    async def run(self, *, task_status: Started) -> None:
        name = str(self.name)
        if name in self.witness.living:
            self.witness.violations.append(f"{name} lives twice")
        self.witness.living.add(name)
        try:
            await trio.sleep(self.attributes.start_seconds)
            self._check("starting")
            self.alive = True
            task_status.started()
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                if self.inside:
                    self.witness.violations.append(f"{name} cleans up with {self.inside} calls inside")
                self._check("before cleanup")
                await trio.sleep(self.attributes.stop_seconds)
                self._check("after cleanup")
            self.alive = False
            self.witness.living.discard(name)

    def _check(self, when: str) -> None:
        for full, dependency in self.dependencies.items():
            assert isinstance(dependency, Traced)
            if not dependency.alive:
                self.witness.violations.append(f"{self.name} {when}: {full} is dead")

    async def used(self) -> int:
        """Serve as the body of every method: check before and after a short wait."""
        self.witness.calls += 1
        self.inside += 1
        try:
            for moment in ("call begins", "call ends"):
                if not self.alive:
                    self.witness.violations.append(f"{self.name}: {moment} while it is dead")
                self._check(moment)
                await trio.sleep(0.01)
            return int(self.attributes.value)
        finally:
            self.inside -= 1


class TracedSensor(Traced, Sensor):
    """A sensor whose reading is its configured value."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        return {"value": await self.used()}


class TracedMotor(Traced, Motor):
    """A motor that must be stopped before it ends, while its dependencies are alive."""

    async def stop(self, *, extra: Extra = None) -> None:
        if not self.alive:
            self.witness.violations.append(f"{self.name}: stopped while it is dead")
        self._check("stop")
        await trio.sleep(0.001)

    async def is_moving(self) -> bool:
        await self.used()
        return False


MODEL = Model.parse("test:traced:it")


def registry(witness: Witness) -> Registry:
    """Return a registry of only the instrumented models, which report to `witness`."""
    models = Registry({})
    for base in (TracedSensor, TracedMotor):
        models.add(base.API, MODEL, type(base.__name__, (base,), {"witness": witness}))
    return models


SENSOR = API("rdk", "component", "sensor")
MOTOR = API("rdk", "component", "motor")
