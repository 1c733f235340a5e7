"""Sensors that control the data manager: one controls what is captured, the other whether data is uploaded.

Each has a node that requires the data manager and the sensor. If a sensor fails or does not answer in time, everything
is captured as configured, and nothing is uploaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

import trio

from engine import ResourceHost, Sensor
from engine.planning import INTERNAL
from hal import Hardware
from models.data_manager import DataManagerConfig
from nursery_graph import Node, Restart
from runtime.parts.data.capture.collector import EXTRA
from runtime.parts.data.capture.control import PERIOD, Override, parse_overrides
from runtime.parts.data.gate import answered, failed, waiting
from runtime.parts.data.manager import BuiltinDataManager
from schema import ErrorKind, MachineError
from schema.document import MachineDocument

CONTROL: Final = f"{INTERNAL}capture-control"
GATE: Final = f"{INTERNAL}capture-sync"
ANSWER_LIMIT: Final = 5.0  # seconds for the answer of such a sensor
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, max_delay=10.0)


def steering_nodes(
    document: MachineDocument,
    config: DataManagerConfig,
    service: str,
    hardware: Hardware,
    override: Callable[[tuple[Override, ...]], None],
) -> list[Node]:
    """Return the nodes for the sensors in `config` of the data manager `service`.

    `override` is called with the current overrides after each reading of the control sensor.
    """
    nodes = []
    if config.capture_control_sensor is not None and not config.capture_disabled:
        control = config.capture_control_sensor
        full = full_name(document, control.name)
        run = partial(_control, full, control.key, service, hardware, override)
        nodes.append(_node(CONTROL, run, service, full, control.key))
    if config.selective_syncer_name and not config.sync_disabled:
        full = full_name(document, config.selective_syncer_name)
        run = partial(_gate, full, config.sync_interval, service, hardware)
        nodes.append(_node(GATE, run, service, full, config.sync_interval))
    return nodes


def _node(name: str, run: Any, service: str, sensor: str, detail: object) -> Node:
    return Node(name, run, requires=frozenset({service, sensor}), version=(sensor, detail), restart=RESTART)


def full_name(document: MachineDocument, name: str) -> str:
    """Return the full name for a simple or full name; that of a sensor if nothing with that name is configured."""
    names = (str(entry.name) for entry in document.resources if name in (entry.name.short, str(entry.name)))
    return next(names, name if "/" in name else f"{Sensor.API}/{name}")


async def ask(host: ResourceHost) -> Mapping[str, Any]:
    """Return the readings of a sensor.

    Raises MachineError if it is not a sensor or does not answer in time, and any exception of its driver.
    """
    with trio.move_on_after(ANSWER_LIMIT):
        async with host.use() as resource:
            if not isinstance(resource, Sensor):
                raise MachineError(f"{host.name} has no readings", kind=ErrorKind.INVALID, remedy="name a sensor")
            return await resource.get_readings(extra=dict(EXTRA))
    raise MachineError(f"no answer within {ANSWER_LIMIT:g} s", kind=ErrorKind.TIMEOUT)


async def _control(
    sensor: str,
    key: str,
    service: str,
    hardware: Hardware,
    override: Callable[[tuple[Override, ...]], None],
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    log = deps[service].resource.log
    task_status.started()
    logged_problem = ""
    try:
        async with hardware.ticks(PERIOD) as ticks:
            async for _ in ticks:
                problem = ""
                overrides: tuple[Override, ...] = ()
                try:
                    overrides = parse_overrides(await ask(deps[sensor]), key)
                except Exception as error:  # a driver's own code, and what it returned
                    problem = str(error) or repr(error)
                override(overrides)
                if problem and problem != logged_problem:
                    log.warning(
                        "the sensor that controls capture fails: everything is captured as configured",
                        sensor=sensor,
                        error=problem,
                    )
                logged_problem = problem
    finally:
        override(())


async def _gate(
    sensor: str,
    period: float,
    service: str,
    hardware: Hardware,
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    manager = cast("BuiltinDataManager", deps[service].resource)
    task_status.started()
    try:
        async with hardware.ticks(period) as ticks:
            while True:
                try:
                    gate = answered(sensor, await ask(deps[sensor]))
                except Exception as error:  # a driver's own code
                    gate = failed(sensor, error)
                await manager.gate_changed(gate)
                await anext(aiter(ticks))
    finally:
        manager.gate = waiting(sensor)
