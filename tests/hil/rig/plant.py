"""The host's side of the plant: chips, adapters, GPIO chips and USB devices that tests connect to the guest."""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

if TYPE_CHECKING:
    from tests.hil.rig.air import Air
from tests.hil.image.contents import SITE, SOURCE
from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest

LIMIT: Final = 60.0  # seconds for a request that does not wait for an event


class PlantError(AssertionError):
    """The plant rejected a request."""


class Thing:
    """An object of any class in the guest: `set(temperature_c=30)`, `get("temperature_c")`, `call("method", ...)`."""

    def __init__(self, plant: Plant, name: str) -> None:
        self.plant = plant
        self.name = name

    async def set(self, **values: Any) -> None:
        """Set attributes; PlantError if one does not exist."""
        await self.plant.ask("set", name=self.name, values=values)

    async def get(self, attribute: str) -> Any:
        """Return an attribute."""
        return await self.plant.ask("get", name=self.name, attribute=attribute)

    async def call(self, method: str, *args: Any, limit: float = LIMIT, **kwargs: Any) -> Any:
        """Call a method and return its result; an async method may take at most `limit` seconds."""
        return await self.plant.ask("call", limit=limit, name=self.name, method=method, args=list(args), kwargs=kwargs)

    async def drop(self) -> None:
        """Remove the object before the test ends."""
        await self.plant.ask("drop", name=self.name)


Kind = TypeVar("Kind", bound=Thing)


class Cable(Thing):
    """A USB device that can be plugged in and unplugged."""

    async def plug(self, serial: str = "") -> None:
        """Plug it in, optionally with another serial number; return when udev has it."""
        await self.call("plug", serial)

    async def unplug(self) -> None:
        """Unplug it, even while it is in use; return when it is gone."""
        await self.call("unplug")

    async def stall(self, stalled: bool = True) -> None:
        """Make it stop answering, or answer again."""
        await self.set(stalled=stalled)


class Adapter(Cable):
    """A USB-to-I2C adapter. `bus` is its device node, such as /dev/i2c-3."""

    bus = ""

    async def find(self) -> str:
        """Return its present device node once it exists; the number may change after a replug."""
        self.bus = await self.call("node")
        return self.bus

    async def plug(self, serial: str = "") -> None:
        """Plug it in and update `bus`. See Cable.plug."""
        await super().plug(serial)
        await self.find()

    async def attach(self, address: int, what: str | Thing, /, *args: Any, **kwargs: Any) -> Thing:
        """Attach a chip to the bus: an object, or a class ("models.chips.tmp102:Tmp102Target") and its arguments."""
        chip = what if isinstance(what, Thing) else await self.plant.make(what, *args, **kwargs)
        await self.call("attach", address, chip)
        return chip

    async def detach(self, address: int) -> None:
        """Remove a chip from the bus."""
        await self.call("detach", address)

    async def refuse(self, address: int, refused: bool = True) -> None:
        """Make the chip at an address stop acknowledging, or acknowledge again."""
        await self.call("refuse", address, refused)

    async def messages(self, address: int | None = None) -> int:
        """Count the messages to an address, or to all, since the adapter was created."""
        count: int = await self.call("messages", address)
        return count


class Bank(Thing):
    """A GPIO chip: its name `chip` (gpiochip0), its `path`, and the `label` by which boards and lines refer to it."""

    chip = path = label = ""

    async def pull(self, line: int, high: bool) -> None:
        """Drive a line from outside."""
        await self.call("pull", line, high)

    async def value(self, line: int) -> bool:
        """Return the present level of a line."""
        level: bool = await self.call("value", line)
        return level

    async def wait_value(self, line: int, high: bool, limit: float = 30.0) -> float:
        """Return the guest time at which a line reaches a level; 0.0 if it already has that level."""
        when: float = await self.call("wait_value", line, high, limit=limit)
        return when

    async def wait_event(self, line: int, what: str, *, since: float = 0.0, limit: float = 30.0) -> float:
        """Return the guest time at which software sets, requests, releases or reconfigures a line."""
        when: float = await self.call("wait_event", line, what, since, limit=limit)
        return when

    async def history(self, line: int, since: float = 0.0) -> list[dict[str, Any]]:
        """Return what software did with a line: time, high, what (set, requested, released, reconfigured)."""
        events: list[dict[str, Any]] = await self.call("history", line, since)
        return events

    async def wait_rises(self, line: int, count: int, since: float = 0.0, *, limit: float = 30.0) -> None:
        """Return once software has raised a line `count` times since a guest time."""
        await self.call("wait_rises", line, count, since, limit=limit)

    async def duty(self, line: int, since: float = 0.0) -> dict[str, float]:
        """Return duty, frequency and rises of the wave on a line since a guest time."""
        wave: dict[str, float] = await self.call("duty", line, since)
        return wave

    async def quadrature(self, a: int, b: int, steps: int, rate: float) -> None:
        """Turn an encoder: `steps` edges (backwards if negative), `rate` per second; return when done."""
        await self.call("quadrature", a, b, steps, rate, limit=LIMIT + abs(steps) / rate * 5)


class Plant:
    """The devices connected to the guest. Everything created in a test is removed after it."""

    def __init__(self, process: GuestProcess, guest: Guest) -> None:
        self.guest = guest
        self._process = process
        self._names = itertools.count()
        self._numbers = itertools.count(int.from_bytes(os.urandom(4)) << 16)
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}

    async def make(self, what: str, *args: Any, **kwargs: Any) -> Thing:
        """Create an object of a class, by import path; its `async def run(self)`, if any, runs until the test ends."""
        return await self.make_as(Thing, what, *args, **kwargs)

    async def i2c_adapter(self, serial: str = "RIGI2C1") -> Adapter:
        """Plug in a USB-to-I2C adapter and wait for its bus."""
        adapter = await self.make_as(Adapter, "tests.hil.guest.adapter:Adapter", serial)
        await adapter.find()
        return adapter

    async def gpio(self, lines: int = 28, *, label: str = "rig", names: Mapping[int, str] | None = None) -> Bank:
        """Create a GPIO chip."""
        settings = {"label": label, "lines": lines, "names": {str(key): name for key, name in (names or {}).items()}}
        bank = await self.make_as(Bank, "tests.hil.guest.gpio_bank:GpioBank", **settings)
        bank.label, bank.chip, bank.path = label, await bank.get("chip"), await bank.get("path")
        return bank

    async def usb(self, what: str | Thing, /, **descriptors: Any) -> Cable:
        """Plug in a USB device: a target (object or import path), with the fields of usb_cable.Descriptors."""
        target = what if isinstance(what, Thing) else await self.make(what)
        cable = await self.make_as(Cable, "tests.hil.guest.usb_cable:UsbCable", target, **descriptors)
        await cable.plug()
        return cable

    async def air(self, radios: int = 3, *, machine: int = 1) -> Air:
        """Create simulated radios in reach of each other; the first `machine` of them are the machine's own.

        Each of the others serves one access point or phone. Only one air exists at a time.
        """
        from tests.hil.rig.air import open_air

        return await open_air(self, radios, machine)

    async def reset(self) -> None:
        """Remove everything."""
        await self.ask("reset")

    async def make_as(self, kind: type[Kind], what: str, *args: Any, **kwargs: Any) -> Kind:
        """Create an object like `make`, and return it as a `kind`."""
        thing = kind(self, f"{what.rpartition(':')[2]}-{next(self._names)}-{os.urandom(2).hex()}")
        await self.ask("make", name=thing.name, what=what, args=list(args), kwargs=kwargs)
        return thing

    async def ask(self, do: str, *, limit: float = LIMIT, **fields: Any) -> Any:
        """Send one request to the service in the guest and return its answer."""
        number = next(self._numbers)
        answers, answered = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[number] = answers
        try:
            with trio.fail_after(limit):
                await self._process.write(json.dumps({"id": number, "do": do, **_encode(fields)}) + "\n")
                try:
                    answer = await answered.receive()
                except trio.EndOfChannel:
                    raise PlantError(f"the plant has ended:\n{self._process.output}") from None
        except trio.TooSlowError:
            raise PlantError(f"{do} {fields}: no answer within {limit} s\n{self._process.stderr}") from None
        finally:
            del self._answers[number]
        if "error" in answer:
            raise PlantError(f"{do} {fields}: {answer['error']}\n{answer['detail']}")
        return _decode(answer["result"])

    async def receive(self) -> None:
        """Distribute answers to their requests; run this in a nursery."""
        async for line in self._process.lines:
            answer = json.loads(line)
            if answer["id"] in self._answers:
                self._answers[answer["id"]].send_nowait(answer)
        for answers in self._answers.values():
            answers.close()


async def open_plant(guest: Guest) -> Plant:
    """Return the plant of this module's guest; the first test that uses it starts it."""
    number = guest.vm.kept.get("plant")
    if number is None:
        elsewhere = guest.vm.source != SOURCE
        env = {"PYTHONPATH": f"{guest.vm.source}:{SITE}"} if elsewhere else {}
        process = await guest.start(["python3", "-m", "tests.hil.guest.plant"], env=env, keep=True, fresh=elsewhere)
        guest.vm.kept["plant"] = process.number
    else:
        process = guest.channel.attach(number, "the plant")
    plant = Plant(process, guest)
    guest.nursery.start_soon(plant.receive)
    await plant.reset()
    return plant


def _encode(value: Any) -> Any:
    if isinstance(value, Thing):
        return {"$": value.name}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return [_encode(item) for item in value] if isinstance(value, list | tuple) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            base64.b64decode(value["bytes"])
            if value.keys() == {"bytes"}
            else {key: _decode(item) for key, item in value.items()}
        )
    return [_decode(item) for item in value] if isinstance(value, list) else value
