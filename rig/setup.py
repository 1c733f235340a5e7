"""The requirements of a test, and the interface of a kind of rig."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from engine import Resource
from rig.artefacts import Artefacts
from rig.faults import Bench, Context
from rig.outputs import Outputs
from rig.plant import PlantClass, PlantLink
from rpc.api import ApiClient
from runtime.server import Machine
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Setup:
    """The requirements of one test: the document of the machine, additional drivers, the plant; and where results go.

    `plant_name` is the `module:Class` by which another computer finds the class of the plant, or empty; `folder` is
    that of the test. `unsafe` is filled after everything has stopped: descriptions of outputs that are not safe.
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
    """A machine and its environment on one kind of rig."""

    @property
    def client(self) -> ApiClient:
        """A client of the machine."""

    @property
    def bench(self) -> Bench | None:
        """Control of the hardware around the machine; None if the rig has no such control."""

    @property
    def plant(self) -> PlantLink | None:
        """Access to the plant; None if the rig has no model of it."""

    @property
    def machine(self) -> Machine | None:
        """The machine object; None if the machine is in another process."""

    @property
    def power_loss(self) -> Callable[[], Context] | None:
        """Creates a context in which the computer of the machine has no power; None if the rig cannot do that."""


Provider: TypeAlias = Callable[[Setup], AbstractAsyncContextManager[Backend]]
"""Starts the machine; on entry, every resource has been tried once. On exit, the machine is stopped in order, and
outputs that could not be brought to their safe level are added to `setup.unsafe`."""


def read_document(config: object, folder: Path) -> dict[str, Any]:
    """Return a document given as a mapping or a path relative to `folder`. MachineError (INVALID) if malformed."""
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
