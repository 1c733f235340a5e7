"""Creation of a running rig from the options of a pytest run and the marker of a test."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from rig.artefacts import Artefacts, Journal
from rig.outputs import Outputs
from rig.plant import PlantClass, load_plant
from rig.rig import Rig, running
from rig.run import Run
from rig.setup import Provider, Setup, read_document

_KINDS: Final = {
    "sim": "rig.local:open_sim",
    "linux": "rig.local:open_linux",
}
_ADDRESS: Final = "rig.remote:open_address"


@dataclass(slots=True)
class TestState:
    """The plugin's state of a test that uses the rig. `marker_arguments` are the arguments of its marker."""

    __test__ = False

    kind: str
    seed: int
    folder: Path
    base: Path  # folder to which paths of configurations are relative
    marker_arguments: Mapping[str, Any]
    run: Run
    journal: Journal
    providers: Mapping[str, str]  # user-defined kinds of rig: name -> module:function
    artefacts: Artefacts | None = None
    outputs: list[Outputs] = field(default_factory=list)

    def finish(self) -> None:
        """Check that no output is still driven, and write the artefacts. Called after the event loop has ended."""
        for outputs in self.outputs:
            self.run.wrong += outputs.unsafe()
        if self.artefacts is not None:
            self.artefacts.write()
        self.journal.note(f"-- {'UNSAFE: ' + '; '.join(self.run.wrong) if self.run.wrong else 'safe'}")


def find_provider(kind: str, own: Mapping[str, str]) -> Provider:
    """Return the provider of a kind of rig: built in, from the setting `rigs`, `module:function`, or an address.

    ValueError if `kind` has another form.
    """
    path = own.get(kind) or _KINDS.get(kind) or (kind if _is_path(kind) else _ADDRESS)
    if path is _ADDRESS and ":" not in kind and "/" not in kind:
        kinds = ", ".join([*_KINDS, *own])
        raise ValueError(f"--rig {kind}: not one of {kinds}, and not an address (host:port) or module:function")
    module, _, name = path.partition(":")
    provider: Provider = getattr(importlib.import_module(module), name)
    return provider


def _is_path(kind: str) -> bool:
    module, colon, name = kind.partition(":")
    return bool(colon) and "//" not in kind and name.isidentifier() and all(map(str.isidentifier, module.split(".")))


@asynccontextmanager
async def open_rig(state: TestState, config: object, plant: str | PlantClass | None) -> AsyncIterator[Rig]:
    """Start the rig of a test from its configuration and plant."""
    document = read_document(config, state.base)
    artefacts = state.artefacts = Artefacts(state.folder, trio.current_time)

    levels: dict[str, float] = {}

    def record_level(name: str, level: float, at: float | None = None) -> None:
        if levels.get(name) != level:
            levels[name] = level
            artefacts.recorder.add(name, level, steps=True, at=at, title=outputs.title(name))
            state.journal.note(f"{name} {level:g}")

    outputs = Outputs(record_level)
    state.outputs.append(outputs)
    plant_class = load_plant(plant)
    setup = Setup(
        kind=state.kind,
        document=document,
        models=tuple(state.marker_arguments.get("models", ())),
        plant=plant_class,
        plant_name=plant if isinstance(plant, str) else _name_of(plant_class),
        folder=state.base,
        seed=state.seed,
        artefacts=artefacts,
        outputs=outputs,
        unsafe=state.run.wrong,
    )
    async with find_provider(state.kind, state.providers)(setup) as backend:
        async with running(setup, backend, float(state.marker_arguments.get("sample", 0.0))) as rig:
            yield rig


def _name_of(plant: PlantClass | None) -> str:
    return f"{plant.__module__}:{plant.__qualname__}" if isinstance(plant, type) else ""
