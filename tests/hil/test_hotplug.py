"""Hot-plug events of real devices: with udev, without it, and for an unprivileged user; gpiozero on real lines."""

from __future__ import annotations

import json

import pytest
import trio

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.test_gpio import LIMIT, program

pytestmark = pytest.mark.systemd  # it stops and starts udev

LISTEN = """
import os
async with hardware.hotplug() as events:
    say(ready=True)
    async for event in events:
        if event.subsystem in ("tty", "usb", "gpio"):
            say(action=event.action, subsystem=event.subsystem, node=event.node, device=event.device,
                there=bool(event.node) and os.path.exists("/dev/" + event.node),
                linked=os.path.exists(event.properties.get("DEVLINKS", "").split(" ")[0]),
                serial=event.properties.get("ID_SERIAL_SHORT", ""))
"""


async def heard(guest: Guest, user: str = "") -> list[dict[str, object]]:
    """Return what a listener prints while a cable is plugged in and unplugged."""
    process = await program(guest, LISTEN, user=user)
    with trio.fail_after(LIMIT):
        await process.wait_output("ready")
        cable = await guest.usb.serial("HOT0001")
        await process.wait_output('"action": "add", "subsystem": "tty"')
        await cable.unplug()
        await process.wait_output('"action": "remove", "subsystem": "tty"')
    await process.stop()
    return [json.loads(line) for line in process.stdout.splitlines()][1:]


def of(events: list[dict[str, object]], action: str, subsystem: str) -> dict[str, object]:
    return next(event for event in events if (event["action"], event["subsystem"]) == (action, subsystem))


async def test_a_device_is_announced_after_udev_has_processed_it(guest: Guest) -> None:
    for user in ("", "hil"):
        events = await heard(guest, user)
        added, removed = of(events, "add", "tty"), of(events, "remove", "tty")
        assert added["node"] == removed["node"] == "ttyUSB0"
        assert (added["there"], added["linked"], added["serial"]) == (True, True, "HOT0001")
        assert (removed["there"], removed["linked"]) == (False, False)
        assert str(added["device"]).startswith(guest.usb.devices)
        assert of(events, "add", "usb")["device"]
        assert events.index(of(events, "add", "usb")) < events.index(added) < events.index(removed)


async def test_without_udev_kernel_events_are_used(guest: Guest) -> None:
    sockets = "systemd-udevd-control.socket systemd-udevd-kernel.socket"
    await guest.run(f"systemctl stop {sockets} systemd-udevd.service; rm -f /run/udev/control")
    try:
        process = await program(guest, LISTEN)
        with trio.fail_after(LIMIT):
            await process.wait_output("ready")
            await guest.run("modprobe -r ftdi_sio; modprobe ftdi_sio")
            await guest.run("echo change > /sys/class/tty/ttyS0/uevent")
            await process.wait_output('"subsystem": "tty"')
        await process.stop()
    finally:
        await guest.run(f"systemctl start {sockets} systemd-udevd.service")
    event = of([json.loads(line) for line in process.stdout.splitlines()][1:], "change", "tty")
    assert event["node"] == "ttyS0"
    assert str(event["device"]).endswith("/tty/ttyS0")


async def test_a_gpio_chip_is_announced(guest: Guest, plant: Plant) -> None:
    process = await program(guest, LISTEN)
    with trio.fail_after(LIMIT):
        await process.wait_output("ready")
        bank = await plant.gpio()
        # the kernel's class for user space reports the same chip without a node, before or after
        await process.wait_output(f'"action": "add", "subsystem": "gpio", "node": "{bank.chip}"')
        await bank.drop()
        await process.wait_output(f'"action": "remove", "subsystem": "gpio", "node": "{bank.chip}"')
    await process.stop()


async def test_gpiozero_devices_run_on_real_lines(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio(names={3: "DOOR", 4: "LAMP"})
    with trio.fail_after(LIMIT * 2):
        process = await program(
            guest,
            """
from gpiozero import LED, PWMLED, Button
from hal.zero.factory import PortFactory

async with trio.open_nursery() as nursery:
    factory = PortFactory(hardware, nursery)
    lamp, button = LED("LAMP", pin_factory=factory), Button("DOOR", pull_up=False, hold_time=0.1, pin_factory=factory)
    wave = PWMLED("rig:6", frequency=20, pin_factory=factory)
    ended = trio.Event()
    button.when_pressed = lamp.on
    button.when_released = lambda: (lamp.off(), ended.set())
    wave.value = 0.5
    await factory.settled()
    say(ready=True, lamp=lamp.is_lit, pressed=button.is_pressed)
    await ended.wait()
    lamp.blink(0.05, 0.05)  # a thread of gpiozero
    await trio.lowlevel.wait_readable(0)  # until the test has seen enough
    for device in (lamp, button, wave):
        device.close()
    await factory.settled()
    say(reservations=hardware.reservations.all())
    nursery.cancel_scope.cancel()
""",
        )
        await process.wait_output("ready")
        since = await guest.monotonic()
        await bank.pull(3, True)
        await bank.wait_value(4, True)
        await bank.pull(3, False)
        await bank.wait_value(4, False)

        async def blinks() -> int:
            return sum(event["high"] for event in await bank.history(4, since) if event["what"] == "set")

        with trio.fail_after(LIMIT):
            while await blinks() < 4 or (await bank.duty(6, since))["rises"] < 10:  # noqa: ASYNC110 - the guest's chip
                await trio.sleep(0.1)
        await process.write("x")
        assert await process.wait() == 0, process.output
    first, last = (json.loads(line) for line in process.stdout.splitlines())
    assert (first["lamp"], first["pressed"], last["reservations"]) == (False, False, {})
    released = [(await bank.history(line))[-1]["what"] for line in (3, 4, 6)]
    assert released == ["released"] * 3
