"""Cut the power while networks are changed: `python -m tests.hil.network_cuts [--cuts 200] [--seed N] [--real 10]`.

Network management in a guest changes from one wifi network to another, to a static address, to a network that cannot be
joined, or to one that a person has entered. At a seeded effect of the change, it is killed together with its radios and
what it has below /run, which is what the kernel and /run lose with the power; every `--real`th time the power of the
whole guest is cut, so that data which had not reached the disk is lost as well. Afterwards the device must be online
through the old or the new network within LIMIT seconds, and its stored record must be intact and readable only by root.

Prints each cut, and a table. Exit status 1 if something was wrong. It takes about 20 s for each cut.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from tests.hil.image.places import BUILD, why_not_ready
from tests.hil.rig.air import Air
from tests.hil.rig.guest import Guest, open_guest
from tests.hil.rig.kinds import why_not_uml
from tests.hil.rig.plant import Plant, open_plant
from tests.hil.rig.source import share_source
from tests.hil.rig.uml_machine import UmlMachine
from tests.hil.test_network import HOME, PASSPHRASE, Device, running
from tests.hil.test_network_faults import ASKED

FOLDER: Final = "/root/network"
"""Folder of the record, on the disk of the guest."""
GARAGE: Final = "garage"
MOST_EFFECTS: Final = 10
"""Effects of the change after which the power is cut at the latest; a change has 3 to 9."""
WAIT: Final = 8.0
"""Seconds after which the power is cut if there were fewer effects."""
LIMIT: Final = 240.0
"""Seconds until the device is online: a network that cannot be joined is on trial for 120 s."""

Say = Callable[[str], None]


def wifi(ssid: str, **fields: Any) -> dict[str, Any]:
    return {"type": "wifi", "ssid": ssid, "psk": PASSPHRASE, **fields}


BEFORE: Final = {HOME: wifi(HOME)}
STATIC: Final = {"ipv4_address": "192.168.51.200/24", "ipv4_gateway": "192.168.51.1"}
CHANGES: Final[Mapping[str, dict[str, Any]]] = {
    "another network": {GARAGE: wifi(GARAGE)},
    "a preferred network": {HOME: wifi(HOME), GARAGE: wifi(GARAGE, priority=5)},
    "a static address": {HOME: wifi(HOME, **STATIC)},
    "another name": {"house": wifi(HOME)},
    "a wrong password": {GARAGE: wifi(GARAGE, psk="wrong horse")},
}
"""Networks of the configuration after the change."""


def settings(networks: Mapping[str, Any]) -> dict[str, Any]:
    return {"network_configuration": {}, "additional_networks": dict(networks)}


class Cuts:
    """A guest, in which the power is cut again and again."""

    def __init__(self, guest: Guest, seed: int, say: Say) -> None:
        self.effects: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self._guest, self._random, self._say = guest, random.Random(seed), say

    @asynccontextmanager
    async def _air(self) -> AsyncIterator[Air]:
        plant: Plant = await open_plant(self._guest)
        air = await plant.air(radios=3)
        await air.access_point(HOME, PASSPHRASE)
        await air.access_point(GARAGE, PASSPHRASE, channel=6)
        yield air
        if not self._guest.channel.closed:
            await plant.reset()

    async def one(self, number: int, *, real: bool) -> None:
        """Change the networks once, cut the power, and see whether the device is online afterwards."""
        change = self._random.choice(list(CHANGES))
        after, delay = self._random.randrange(MOST_EFFECTS), self._random.random() * 0.05
        last = "before the first effect"
        await self._guest.run(f"rm -rf {FOLDER} /run/network.json*")
        async with self._air():
            async with running(self._guest, FOLDER, configured=True, settings=settings(BEFORE), cloud=ASKED) as device:
                await self._proved(device)
                await device.send(settings=settings(CHANGES[change]))
                with trio.move_on_after(WAIT):
                    for _ in range(after):
                        last = (await device.news("effect"))["effect"]
                await trio.sleep(delay)
                if real:
                    await self._guest.power_cut()
                else:
                    await device.process.stop(9)
        if real:
            await self._guest.boot()
        else:
            await self._guest.run("killall -9 wpa_supplicant || true; rm -rf /run/network.json* /run/machine-agent")
        seconds = await self._online(change, f"cut {number} ({change}, {last})")
        self.effects[last] += 1
        self.changes[change] += 1
        kind = "power" if real else "kill"
        self._say(
            f"{number:4} {kind:5} {change}: cut at {last}; {f'online after {seconds:.0f} s' if seconds else 'WRONG'}"
        )

    async def _online(self, change: str, what: str) -> float:
        """Start network management as after a boot; return the seconds until it is online, 0 if it is not."""
        began = trio.current_time()
        async with self._air():
            async with running(
                self._guest, FOLDER, configured=True, settings=settings(CHANGES[change]), cloud=ASKED
            ) as device:
                try:
                    await self._proved(device)
                    seconds = trio.current_time() - began
                    self.seconds.append(seconds)
                except trio.TooSlowError:
                    self.wrong.append(f"{what}: not online within {LIMIT:.0f} s: {await device.call('explain')}")
                    seconds = 0.0
                listed = (await self._guest.run(f"find {FOLDER} -type f -printf '%m %f\\n'")).stdout.splitlines()
                await device.process.close_input()
                await device.process.wait()
                for line in listed:
                    if not line.startswith("600 ") or line.endswith(".damaged"):
                        self.wrong.append(f"{what}: {line}")
        return seconds

    async def _proved(self, device: Device) -> None:
        with trio.fail_after(LIMIT):
            while True:
                status = await device.call("status")
                if status["mode"] == "online" and any(entry["cloud"] for entry in status["interfaces"]):
                    return
                await trio.sleep(0.5)  # another computer, in effect: nothing reports changes


async def cut_power(share: Path, count: int, seed: int, every: int, say: Say) -> Cuts:
    """Cut the power `count` times, every `every`th time that of the whole guest."""
    with UmlMachine(share) as machine:
        async with open_guest(machine) as guest:
            cuts = Cuts(guest, seed, say)
            for number in range(1, count + 1):
                await cuts.one(number, real=number % every == 0)
    return cuts


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m tests.hil.network_cuts")
    parser.add_argument("--cuts", type=int, default=200, help="how often the power is cut (200)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="seed of the moments (random)")
    parser.add_argument("--real", type=int, default=10, help="every how many cuts the whole guest is cut (10)")
    options = parser.parse_args()
    if reason := why_not_ready() or why_not_uml():
        print(reason, file=sys.stderr)
        return 1
    print(f"seed {options.seed}", flush=True)
    share = BUILD / f"share-{os.getpid()}"
    share_source(share)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s {text}", flush=True)

    try:
        cuts = trio.run(cut_power, share, options.cuts, options.seed, options.real, say)
    finally:
        shutil.rmtree(share, ignore_errors=True)
    for counter in (cuts.changes, cuts.effects):
        print(", ".join(f"{name}: {count}" for name, count in counter.most_common()))
    if cuts.seconds:
        print(f"online after {sorted(cuts.seconds)[len(cuts.seconds) // 2]:.0f} s, at most {max(cuts.seconds):.0f} s")
    print("\n".join(f"WRONG: {text}" for text in cuts.wrong) or "nothing was wrong", flush=True)
    return 1 if cuts.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
