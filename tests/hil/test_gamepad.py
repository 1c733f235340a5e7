"""A gamepad in the guest: the kernel's uinput, machine-server, the official SDK."""

from __future__ import annotations

import signal
import time
from typing import Any

import trio
from viam.components.input import Control, Controller, Event, EventType

from tests.hil.guest.gamepad import EV_ABS, EV_KEY
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant, Thing
from tests.hil.rig.record import Recorder
from tests.hil.test_serial import component, first_good, found, machine

LIMIT = 60.0
SOUTH, X, RZ = 0x130, 0, 5


async def plugged(plant: Plant, **who: Any) -> tuple[Thing, str]:
    pad = await plant.make("tests.hil.guest.gamepad:Gamepad", **who)
    return pad, await pad.call("plug")


class Heard:
    """Events that a client received through callbacks, which the SDK calls in its own thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def take(self, event: Event) -> None:
        self.events.append(event)

    async def wait(self, kind: EventType, control: Control, value: float) -> Event:
        """Wait for the first matching event and return it."""
        with trio.fail_after(LIMIT):
            while True:
                for event in [*self.events]:
                    if (event.event, event.control) == (kind, control) and abs(event.value - value) < 1e-6:
                        return event
                await trio.sleep(0.01)


async def test_gamepad_events_arrive_and_a_lost_gamepad_releases_its_controls(
    guest: Guest, plant: Plant, record_recovery: Recorder
) -> None:
    pad, path = await plugged(plant)
    entry = component("pad", "input_controller", "gamepad", vendor_id="045e")
    async with machine(guest, entry) as (server, sdk):
        controller = Controller.from_robot(sdk.robot, "pad")
        controls = await sdk(controller.get_controls())
        assert {Control.ABSOLUTE_X, Control.ABSOLUTE_RZ, Control.BUTTON_SOUTH, Control.BUTTON_MENU} <= set(controls)
        assert await sdk(controller.get_status()) == {"connected": True, "device": "Rig Gamepad", "path": path}

        heard = Heard()

        async def listen() -> None:
            for control in (Control.ABSOLUTE_X, Control.ABSOLUTE_RZ, Control.BUTTON_SOUTH):
                controller.register_control_callback(control, [EventType.ALL_EVENTS], heard.take)

        await sdk(listen())
        await trio.sleep(1)  # the SDK does not report when it has started to listen
        await pad.call("emit", [[EV_ABS, X, 32767]], [[EV_KEY, SOUTH, 1], [EV_ABS, RZ, 51]])
        await heard.wait(EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_X, 1.0)
        await heard.wait(EventType.BUTTON_PRESS, Control.BUTTON_SOUTH, 1.0)
        await heard.wait(EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_RZ, 0.2)

        heard.events.clear()
        start = time.monotonic()
        await pad.call("unplug")
        await heard.wait(EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_X, 0.0)
        await heard.wait(EventType.BUTTON_RELEASE, Control.BUTTON_SOUTH, 0.0)
        await heard.wait(EventType.DISCONNECT, Control.ABSOLUTE_X, 0.0)
        print(f"everything let go {time.monotonic() - start:.2f} s after the gamepad was unplugged")
        assert all(event.value == 0 for event in (await sdk(controller.get_events())).values())
        assert await sdk(controller.get_status()) == {"connected": False}
        await server.wait_log("No such device")

        start = time.monotonic()
        await pad.call("plug")
        await heard.wait(EventType.CONNECT, Control.ABSOLUTE_X, 0.0)
        record_recovery("gamepad away and back", time.monotonic() - start, seen="Disconnect, every control at 0")
        await pad.call("emit", [[EV_ABS, X, -32768]])
        await heard.wait(EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_X, -1.0)


async def test_dropped_events_are_recovered(guest: Guest, plant: Plant) -> None:
    """After a blocked machine, the kernel's buffer of some hundred events overflows, which SYN_DROPPED reports."""
    pad, _ = await plugged(plant)
    async with machine(guest, component("pad", "input_controller", "gamepad")) as (server, sdk):
        controller = Controller.from_robot(sdk.robot, "pad")
        await pad.call("emit", [[EV_KEY, SOUTH, 1]])

        async def pressed() -> None:
            assert (await sdk(controller.get_events()))[Control.BUTTON_SOUTH].value == 1

        await first_good(pressed)
        await server.signal(signal.SIGSTOP)
        await pad.call("emit", [[EV_KEY, SOUTH, 0], [EV_ABS, X, -32768]])
        await pad.call("emit", [[EV_ABS, RZ, 10]], [[EV_ABS, RZ, 200]], times=2000)
        await server.signal(signal.SIGCONT)

        async def made_good() -> None:
            events = await sdk(controller.get_events())
            assert events[Control.BUTTON_SOUTH].value == 0
            assert events[Control.ABSOLUTE_X].value == -1
            assert abs(events[Control.ABSOLUTE_RZ].value - 200 / 255) < 1e-6

        await first_good(made_good)


async def test_permission_and_choice(guest: Guest, plant: Plant, record_recovery: Recorder) -> None:
    _, first = await plugged(plant, name="First Pad", vendor=0x1111)
    _, second = await plugged(plant, name="Second Pad", vendor=0x2222)
    entries = (
        component("first", "input_controller", "gamepad", name="First Pad", auto_reconnect=False),
        component("second", "input_controller", "gamepad", vendor_id="2222", auto_reconnect=False),
        component("none", "input_controller", "gamepad", vendor_id="3333", auto_reconnect=False),
    )
    async with machine(guest, *entries) as (server, sdk):
        for name, path in (("first", first), ("second", second)):
            assert (await sdk(Controller.from_robot(sdk.robot, name).get_status()))["path"] == path
        await server.wait_log("no input device is 3333:any; there are /dev/input/event.* 'First Pad'")
    async with machine(guest, entries[0], user="hil") as (server, sdk):
        await server.wait_log("Permission denied: add the user to group input")
        start = time.monotonic()
        await guest.run(f"chown hil {first}; udevadm trigger -c change -n {first}")

        async def status() -> Any:
            return await sdk((await found(sdk, Controller, "first")).get_status())

        assert (await first_good(status))["path"] == first
        record_recovery(
            "permission to a gamepad missing, then given",
            time.monotonic() - start,
            seen="Permission denied: add the user to group input",
        )
