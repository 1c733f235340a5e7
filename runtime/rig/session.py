"""From the options of a pytest run and the wishes of a test to a running rig."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from runtime.rig.artefacts import Artefacts, Journal
from runtime.rig.outputs import Outputs
from runtime.rig.plant import PlantClass, load_plant
from runtime.rig.rig import Rig, running
from runtime.rig.run import Run
from runtime.rig.setup import Provider, Setup, read_document

_KINDS: Final = {
    "sim": "runtime.rig.local:open_sim",
    "linux": "runtime.rig.local:open_linux",
}
_ADDRESS: Final = "runtime.rig.remote:open_address"


@dataclass(slots=True)
class TestState:
    """What the plugin keeps of a test that uses the rig. `wishes` are those of its marker."""

    __test__ = False

    kind: str
    seed: int
    folder: Path
    base: Path  # where paths of configurations begin
    wishes: Mapping[str, Any]
    run: Run
    journal: Journal
    providers: Mapping[str, str]  # of the user's own kinds of rig: module:function
    artefacts: Artefacts | None = None
    outputs: list[Outputs] = field(default_factory=list)

    def finish(self) -> None:
        """The event loop has ended: nothing may be driven any more, and the artefacts are complete."""
        for outputs in self.outputs:
            self.run.wrong += outputs.unsafe()
        if self.artefacts is not None:
            self.artefacts.write()
        self.journal.note(f"-- {'UNSAFE: ' + '; '.join(self.run.wrong) if self.run.wrong else 'safe'}")


def find_provider(kind: str, own: Mapping[str, str]) -> Provider:
    """What starts a rig of a kind: one of ours, one of the user's (`rigs` in pytest's settings), or an address."""
    path = own.get(kind) or _KINDS.get(kind) or (kind if _is_path(kind) else _ADDRESS)
    if path is _ADDRESS and ":" not in kind and "/" not in kind:
        known = ", ".join([*_KINDS, *own])
        raise ValueError(f"--rig {kind}: not one of {known}, and not an address (host:port) or module:function")
    module, _, name = path.partition(":")
    provider: Provider = getattr(importlib.import_module(module), name)
    return provider


def _is_path(kind: str) -> bool:
    module, colon, name = kind.partition(":")
    return bool(colon) and "//" not in kind and name.isidentifier() and all(map(str.isidentifier, module.split(".")))


@asynccontextmanager
async def open_rig(state: TestState, config: object, plant: str | PlantClass | None) -> AsyncIterator[Rig]:
    """The rig of a test, from its configuration and plant."""
    document = read_document(config, state.base)
    artefacts = state.artefacts = Artefacts(state.folder, trio.current_time)

    levels: dict[str, float] = {}

    def drive(name: str, level: float, at: float | None = None) -> None:
        if levels.get(name) != level:
            levels[name] = level
            artefacts.recorder.add(name, level, steps=True, at=at, title=outputs.title(name))
            state.journal.note(f"{name} {level:g}")

    outputs = Outputs(drive)
    state.outputs.append(outputs)
    made = load_plant(plant)
    setup = Setup(
        kind=state.kind,
        document=document,
        models=tuple(state.wishes.get("models", ())),
        plant=made,
        plant_name=plant if isinstance(plant, str) else _name_of(made),
        folder=state.base,
        seed=state.seed,
        artefacts=artefacts,
        outputs=outputs,
        unsafe=state.run.wrong,
    )
    async with find_provider(state.kind, state.providers)(setup) as backend:
        async with running(setup, backend, float(state.wishes.get("sample", 0.0))) as rig:
            yield rig


def _name_of(plant: PlantClass | None) -> str:
    return f"{plant.__module__}:{plant.__qualname__}" if isinstance(plant, type) else ""
