"""Power cuts at every step of updates of machine-agent and machine-server, and what must be so afterwards.

After each boot, the files of every release that is linked or runs are complete and of one version. Once the update has
ended, both programs run and serve, each is the release of its record, a good release was confirmed, a bad one is in
quarantine, and nothing of the update is left on the disk.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from tests.hil.agent.device import Device, joined
from tests.hil.agent.releases import SOURCE, real, write
from tests.hil.rig.guest import open_guest
from tests.hil.rig.lines import Gone
from tests.hil.rig.uml_machine import UmlMachine
from tools.release.pack import Packed

STEPS: Final = ("resolve", "download", "verify", "stage", "wait", "switch", "trial", "roll_back", "recover", "end")
BACK: Final = ("roll_back", "recover")
"""Steps that only the update to a bad release reaches."""
SPANS: Final = {"resolve": 0.3, "download": 0.3, "verify": 0.3, "stage": 1.0, "wait": 0.5, "switch": 0.5, "end": 1.0}
"""Seconds within which the power is cut after the beginning of a step; SPAN in the others."""
SPAN: Final = 10.0
CHANGES: Final = 25
"""Up to how many changes of files after the beginning of a step the power is cut, in half of the cuts."""
AGAIN: Final = 0.4
"""Probability of another cut during the same update."""
AGAIN_SPAN: Final = 12.0  # seconds after the boot
SURE: Final = 2
"""Cuts after which a good release is still confirmed: the launcher starts it three times."""
LIMIT: Final = 150.0  # seconds until both programs run again

BAD: Final[Mapping[str, Mapping[str, str]]] = {
    SERVER: {
        "exits at once": "exit 0\n",
        "never serves": "exec sleep 1000\n",
        "crashes later": f"(sleep 7; kill -9 $$) &\n{real(SERVER)}",
    },
    AGENT: {
        "exits at once": "exit 1\n",
        "crashes at once": "kill -9 $$\n",
        "crashes later": f"(sleep 4; kill -9 $$) &\n{real(AGENT)}",
    },
}
"""Scripts of bad releases, by program."""


@dataclass
class Cut:
    """A cut of the power, and in which step the update was."""

    program: str
    release: str  # "good", or what is wrong with it
    step: str


@dataclass
class Result:
    """The cuts so far, how the updates ended, and what was wrong."""

    cuts: list[Cut] = field(default_factory=list)
    ends: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # program, release, result
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the cuts for each step, and how the updates ended."""
        lines = ["step        server  agent"]
        for step in STEPS:
            counts = [sum(cut.step == step and cut.program == name for cut in self.cuts) for name in (SERVER, AGENT)]
            lines.append(f"{step:<10} {counts[0]:>7} {counts[1]:>6}")
        totals = [sum(cut.program == name for cut in self.cuts) for name in (SERVER, AGENT)]
        lines.append(f"{'all':<10} {totals[0]:>7} {totals[1]:>6}")
        lines += [f"{count:>4} x {' / '.join(end)}" for end, count in sorted(self.ends.items())]
        return "\n".join(lines)


Say = Callable[[str], None]


@asynccontextmanager
async def installed(share: Path, folder: Path) -> AsyncIterator[Device]:
    """Start a guest, install both programs, and wait until they run."""
    with UmlMachine(share, systemd=True, source=SOURCE) as vm:
        async with open_guest(vm) as guest, joined(guest, folder) as device:
            await device.install(*(write(folder, program, "1.0.0") for program in PROGRAMS))
            for program in PROGRAMS:
                await device.settled(program, "1.0.0")
            await guest.run("sync")
            yield device


async def cut_power(share: Path, folder: Path, count: int, seed: int, say: Say) -> Result:
    """Cut the power `count` times during updates; return what happened. After a fault, a new guest continues."""
    chance, result, generation = random.Random(seed), Result(), 0
    while len(result.cuts) < count:
        generation += 1
        place = folder / f"guest-{generation}"
        place.mkdir()
        before = len(result.wrong)
        async with installed(share, place) as device:
            updates = Updates(device, place, chance, result, say)
            while len(result.cuts) < count and len(result.wrong) == before:
                await updates.one(count)
    return result


class Updates:
    """Updates of one guest, with cuts of its power."""

    def __init__(self, device: Device, folder: Path, chance: random.Random, result: Result, say: Say) -> None:
        self._device, self._folder, self._chance, self._result, self._say = device, folder, chance, result, say
        self._runs = dict.fromkeys(PROGRAMS, "1.0.0")
        self._number = 1

    async def one(self, most: int) -> None:
        """Begin an update, cut the power once or more, and check how it ends."""
        chance, began = self._chance, time.monotonic()
        self._number += 1
        program, version = chance.choice(PROGRAMS), f"{self._number}.0.0"
        bad = chance.choice(list(BAD[program])) if chance.random() < 0.5 else ""
        release = write(self._folder, program, version, BAD[program][bad] if bad else None)
        step = chance.choice([step for step in STEPS if bad or step not in BACK])
        cuts: list[Cut] = []
        try:
            await self._first(cuts, program, release, step, bad or "good")
            while len(self._result.cuts) + len(cuts) < most and chance.random() < AGAIN:
                await self._another(cuts, program, bad or "good")
            await self._settle()
            end = self._judge(await self._device.state(), program, version, bad, len(cuts))
        except AssertionError as error:
            end = "wrong"
            told = f"{program} {version} ({bad or 'good'}), cuts in {[cut.step for cut in cuts]}: {error}"
            self._result.wrong.append(told)
            self._say(f"WRONG: {told}\n{await self._explain()}")
        self._result.cuts += cuts
        self._result.ends[program, bad or "good", end] += 1
        steps = ", ".join(cut.step for cut in cuts)
        self._say(
            f"{len(self._result.cuts):>4} cuts: {program} {version} {bad or 'good':<16} in {steps}: {end}, "
            f"{time.monotonic() - began:.0f} s"
        )

    async def _first(self, cuts: list[Cut], program: str, release: Packed, step: str, kind: str) -> None:
        chance, device = self._chance, self._device
        [path] = await device.put(release)
        await device.guest.run(["sync", path])
        by_changes = chance.random() < 0.5
        changes = chance.randrange(CHANGES) if by_changes else 1_000_000
        seconds = chance.uniform(0, SPANS.get(step, SPAN))
        async with aclosing(device.moment(program, step, changes, seconds)) as moments:
            await anext(moments)
            await device.update(program, path)
            at = await anext(moments)
            await device.guest.power_cut()
        cuts.append(Cut(program, kind, at))
        await self._boot()

    async def _another(self, cuts: list[Cut], program: str, kind: str) -> None:
        await trio.sleep(self._chance.uniform(0, AGAIN_SPAN))
        progress = ((await self._device.state())[program]["record"] or {}).get("progress") or {}
        await self._device.guest.power_cut()
        cuts.append(Cut(program, kind, progress.get("step", "end")))
        await self._boot()

    async def _boot(self) -> None:
        guest = self._device.guest
        try:
            await guest.boot()
        except trio.TooSlowError:
            raise AssertionError(f"the guest does not boot:\n{guest.vm.log()}") from None
        state = await self._device.state()
        assert not state["wrong"], state["wrong"]

    async def _explain(self) -> str:
        with trio.move_on_after(LIMIT):
            try:
                return await self._device.journal()
            except (AssertionError, OSError, trio.ClosedResourceError, Gone):
                pass
        return "the guest does not answer"

    async def _settle(self) -> None:
        """Wait until no update is in progress, both programs run, and nothing of an update is left."""
        await self._device.until(_is_settled, LIMIT)
        state: Mapping[str, Any] = {}
        with trio.move_on_after(LIMIT):
            while True:
                state = await self._device.state()
                if not _left(state):
                    return
                await trio.sleep(0.3)
        raise AssertionError(f"left on the disk: {_left(state)}")

    def _judge(self, state: Mapping[str, Any], program: str, version: str, bad: str, cuts: int) -> str:
        """Return how the update ended; AssertionError if it must not end so."""
        assert not state["wrong"], state["wrong"]
        for name in PROGRAMS:
            own, current = state[name], state[name]["record"]["slots"]["current"]
            assert own["release"] == current["sha256"], f"{name} {own['version']} runs, and not {current['version']}"
            assert own["version"] == current["version"]
        record = state[program]["record"]
        quarantined = version in [entry["version"] for entry in record["quarantine"]]
        other = next(name for name in PROGRAMS if name != program)
        assert state[other]["version"] == self._runs[other], f"{other} became {state[other]['version']}"
        if state[program]["version"] == version:
            assert not bad, f"the bad release {version} was confirmed"
            self._runs[program] = version
            return "updated"
        assert state[program]["version"] == self._runs[program], f"{state[program]['version']} runs"
        assert quarantined, f"{version} was neither installed nor is it in quarantine: {record}"
        assert bad or cuts > SURE, f"the good release {version} was rolled back: {record['history'][-1:]}"
        return str(record["history"][-1]["result"])


def _is_settled(status: Mapping[str, Any]) -> bool:
    return all(status[name].get("serving") and "step" not in status[name] for name in ("agent", "server"))


def _left(state: Mapping[str, Any]) -> list[str]:
    """Return the files that are in no slot."""
    left = list(state["downloads"])
    for name in PROGRAMS:
        slots = state[name]["record"]["slots"]
        needed = {slot["sha256"] for slot in slots.values() if slot is not None}
        left += [f"{name} {kept}" for kept in state[name]["kept"] if kept not in needed]
    return left
