"""What a test asks of its rig, and what a kind of rig gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from rpc.api.client import ApiClient
from runtime.machine import Machine
from runtime.resource import Resource
from runtime.rig.artefacts import Artefacts
from runtime.rig.faults import Bench, Context
from runtime.rig.outputs import Outputs
from runtime.rig.plant import PlantClass, PlantLink
from schema.errors import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Setup:
    """One test's wishes: the machine's document, drivers of its own, the plant beside it; and where results go.

    `plant_name` is how another computer finds the plant's class (`module:Class`), if it has such a name; `folder`
    is that of the test. `unsafe` is filled when everything has stopped: what is not at its safe level, in words.
    """

    kind: str
    document: Mapping[str, Any]
    models: Sequence[str | type[Resource]]
    plant: PlantClass | None
    plant_name: str
    folder: Path
    seed: int
    artefacts: Artefacts
    outputs: Outputs
    unsafe: list[str]


class Backend(Protocol):
    """A machine and its surroundings, of one kind of rig."""

    @property
    def client(self) -> ApiClient:
        """Of the machine as it is now."""

    @property
    def bench(self) -> Bench | None:
        """What can be done to its surroundings; None if nothing."""

    @property
    def plant(self) -> PlantLink | None:
        """The way to the plant; None if there is no model of it."""

    @property
    def machine(self) -> Machine | None:
        """The machine itself, if it is in this process."""

    @property
    def power_loss(self) -> Callable[[], Context] | None:
        """Inside its context the computer of the machine has no power; None if that cannot be done."""


Provider: TypeAlias = Callable[[Setup], AbstractAsyncContextManager[Backend]]
"""Starts the machine; every resource was tried once when the context begins. Leaving it stops the machine in order
and adds to `setup.unsafe` what could not be brought to its safe level."""


def read_document(config: object, folder: Path) -> dict[str, Any]:
    """A document as a mapping, or as the path of a JSON file relative to `folder`; MachineError names what is wrong."""
    if isinstance(config, Mapping):
        return dict(config)
    path = folder / str(config)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MachineError(f"the configuration {path}: {error}", kind=ErrorKind.INVALID) from error
    if not isinstance(document, dict):
        raise MachineError(f"the configuration {path} is not a JSON object", kind=ErrorKind.INVALID)
    return document
