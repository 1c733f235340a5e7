"""Digital lines on a real GPIO chip (gpio-sim): ports without machine-server, then faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Bank, Plant
from tests.hil.rig.wave import wait_wave

LIMIT = 60.0  # seconds for anything in the guest

PRELUDE = """
import json, time, trio
from trio.testing import wait_all_tasks_blocked
from hal.errors import HalError
from hal.linux.hardware import LinuxHardware
from hal.ports.digital import InputSettings, Line, OutputSettings

hardware = LinuxHardware()

def say(**what):
    print(json.dumps(what), flush=True)

async def refused(manager):
    try:
        async with manager:
            return "not refused"
    except HalError as error:
        return [error.fault.name, str(error)]
"""


async def program(guest: Guest, body: str, **how: Any) -> GuestProcess:
    """Start a program in the guest: the body of an async function over our ports; `say(a=1)` prints a JSON line."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return await guest.start(["python3", "-c", f"{PRELUDE}\nasync def main():\n{lines}\n\ntrio.run(main)"], **how)


async def said(guest: Guest, body: str, **how: Any) -> list[dict[str, Any]]:
    """Run a program in the guest to its end; return what it printed."""
    with trio.fail_after(LIMIT):
        process = await program(guest, body, **how)
        status = await process.wait()
    assert status == 0, process.output
    return [json.loads(line) for line in process.stdout.splitlines()]


async def test_levels_pull_resistors_and_safe_levels(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    await bank.pull(3, True)
    found = await said(
        guest,
        f"""
low, high, three = Line("rig", 4), Line("{bank.path}", 5), Line("{bank.chip}", 3)
async with hardware.digital_output(low, OutputSettings()) as a, hardware.digital_input(three, InputSettings()) as b:
    async with hardware.digital_output(high, OutputSettings(safe=True, active_low=True)) as c:
        say(read=[a.read(), b.read(), c.read()])
        a.write(True)
        c.write(False)
        say(read=[a.read(), b.read(), c.read()])
for bias in ("up", "down"):
    async with hardware.digital_input(three, InputSettings(bias=bias)) as b:
        say(read=[b.read()])
async with hardware.digital_input(three, InputSettings(bias="up", active_low=True)) as b:
    say(read=[b.read()])
""",
    )
    assert [line["read"] for line in found] == [[False, True, True], [True, True, False], [True], [False], [False]]
    # Writes and requests are recorded by different tracers, each in order.
    assert [event["high"] for event in await bank.history(4) if event["what"] == "set"] == [False, True, False]
    assert [event["high"] for event in await bank.history(5) if event["what"] == "set"] == [False, True, False]
    assert (await bank.history(4))[-1]["what"] == "released"


async def test_edges_carry_the_kernels_time(guest: Guest, plant: Plant) -> None:
    await plant.gpio()
    bank = await plant.gpio(label="rig2")
    with trio.fail_after(LIMIT):
        process = await program(
            guest,
            """
async with hardware.digital_input(Line("rig2", 3), InputSettings()) as line, line.edges() as edges:
    say(ready=True)
    offset = time.monotonic() - trio.current_time()
    async for edge in edges:
        say(high=edge.high, time=edge.time + offset, late=trio.current_time() - edge.time, read=line.read())
        if not edge.high:
            break
say(dropped=edges.dropped)
""",
        )
        await process.wait_output("ready")
        before = await guest.monotonic()
        await bank.pull(3, True)
        await process.wait_output('"high": true')
        await bank.pull(3, False)
        assert await process.wait() == 0, process.output
        after = await guest.monotonic()
    rise, fall, end = [json.loads(line) for line in process.stdout.splitlines()][1:]
    assert (rise["high"], rise["read"], fall["high"], end["dropped"]) == (True, True, False, 0)
    assert before - 0.02 <= rise["time"] <= fall["time"] <= after + 0.02  # the resolution of /proc/uptime is 0.01 s
    print(f"edge to task: {rise['late'] * 1e3:.2f} ms and {fall['late'] * 1e3:.2f} ms, emulated")
    assert 0 <= rise["late"] < LIMIT
    assert [event["what"] for event in await bank.history(3)] == [
        "requested", "reconfigured", "reconfigured", "released",
    ]  # fmt: skip


async def test_unavailable_lines_are_explained(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    holder = await guest.start(["gpioset", "--mode=signal", bank.chip, "4=1"])
    await bank.wait_event(4, "requested")
    body = f"""
for line in (Line("rig", 4), Line("rig", 99), Line("nonesuch", 0), Line("/dev/null", 0)):
    say(why=await refused(hardware.digital_output(line, OutputSettings())))
async with hardware.digital_input(Line("rig", 5), InputSettings()):
    say(why=await refused(hardware.digital_input(Line("{bank.chip}", 5), InputSettings())))
"""
    found = [line["why"] for line in await said(guest, body)]
    assert [fault for fault, _ in found] == ["BUSY", "GONE", "GONE", "GONE", "BUSY"]
    assert "used by gpioset" in found[0][1]
    assert "0 to 27" in found[1][1]
    assert f"{bank.chip} [rig] with 28 lines" in found[2][1]
    assert "used by machine-server" in found[4][1]
    await holder.stop()
    await plant.gpio(label="twin")
    await plant.gpio(label="twin")
    body = 'say(why=await refused(hardware.digital_output(Line("twin", 1), OutputSettings())))'
    assert "several" in (await said(guest, body))[0]["why"][1]
    await guest.run("chmod 600 /dev/gpiochip*")
    fault, why = (await said(guest, body, user="hil"))[0]["why"]
    assert fault == "PERMISSION"
    assert "user hil" in why
    assert "group gpio" in why


async def test_a_vanished_chip_is_reported_to_all_users(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    with trio.fail_after(LIMIT):
        process = await program(
            guest,
            """
async def listen(line):
    try:
        async with line.edges() as edges:
            async for _ in edges:
                pass
    except HalError as error:
        say(listener=[error.fault.name, str(error), time.monotonic()])

lines = [Line("rig", number) for number in (3, 4, 5)]
source, sink = hardware.digital_input(lines[0], InputSettings()), hardware.digital_output(lines[1], OutputSettings())
async with source as a, sink as b:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, a)
        nursery.start_soon(listen, a)
        await wait_all_tasks_blocked()
        say(ready=True)
    for use in (a.read, b.read, lambda: b.write(True)):
        try:
            use()
        except HalError as error:
            say(use=error.fault.name)
try:
    async with hardware.pwm(lines[2]):
        pass
except HalError as error:
    say(use=error.fault.name)
""",
        )
        await process.wait_output("ready")
        before = await guest.monotonic()
        await bank.drop()
        assert await process.wait() == 0, process.output
    found = [json.loads(line) for line in process.stdout.splitlines()][1:]
    assert [line["listener"][0] for line in found[:2]] == ["GONE", "GONE"]
    assert [line["use"] for line in found[2:]] == ["GONE"] * 4
    print(f"noticed {found[0]['listener'][2] - before:.2f} s after it was asked to go: {found[0]['listener'][1]}")


async def test_lost_edges_are_counted(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    with trio.fail_after(LIMIT * 2):
        process = await program(
            guest,
            """
import os, sys
async with hardware.digital_input(Line("rig", 3), InputSettings()) as line, line.edges() as edges:
    say(ready=True)
    os.read(0, 1)  # the loop stands still meanwhile
    count = 0
    with trio.move_on_after(1):
        async for _ in edges:
            count += 1
    say(count=count, dropped=edges.dropped)
""",
        )
        await process.wait_output("ready")
        await _toggle(bank, 3, 1500)
        await process.write("x")
        assert await process.wait() == 0, process.output
    end = json.loads(process.stdout.splitlines()[-1])
    print(end)
    # The kernel keeps 1024. Of interrupts that come before it has read the last one it reports one, and of pulses
    # that it read too late we report both edges: this merged 52 of 1,500 interrupts in a slow guest.
    assert 1024 <= end["count"] <= 1024 + 75
    assert 1500 - 1024 - 150 <= end["dropped"] <= 1500 - 1024


async def _toggle(bank: Bank, line: int, edges: int) -> None:
    await bank.call("quadrature", line, 27, edges * 2, 2000, limit=120)


async def test_a_software_pwm_wave(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    process = await program(
        guest,
        """
async with hardware.pwm(Line("rig", 6)) as wave:
    async for words in trio.lowlevel.FdStream(0):
        wave.set_wave(*json.loads(words))
        say(start=time.monotonic())
""",
    )
    for duty, frequency in ((0.25, 20), (0.75, 20), (0.5, 100)):
        await process.write(json.dumps([duty, frequency]))
        with trio.fail_after(LIMIT):
            start = json.loads(await anext(process.lines))["start"]
        period = 1 / frequency
        found = await wait_wave(bank, 6, start + period, width=duty * period, period=period, late=0.002)
        print(f"{duty:.0%} of {frequency} Hz: {found}")
    await process.close_input()
    with trio.fail_after(LIMIT):
        assert await process.wait() == 0, process.output
    assert await bank.value(6) is False


async def test_lines_of_a_program_that_was_killed_are_free(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    with trio.fail_after(LIMIT):
        process = await program(
            guest,
            """
async with hardware.digital_output(Line("rig", 4), OutputSettings()) as a, hardware.pwm(Line("rig", 5)) as b:
    a.write(True)
    b.set_wave(0.5, 50)
    say(ready=True)
    await trio.sleep_forever()
""",
        )
        await process.wait_output("ready")
        await bank.wait_value(4, True)
        await process.signal(9)
        await bank.wait_value(4, False)
        await bank.wait_event(5, "released")
        assert await bank.value(5) is False
    found = await said(
        guest, 'async with hardware.digital_output(Line("rig", 4), OutputSettings()) as a: say(r=a.read())'
    )
    assert found == [{"r": False}]


async def test_hardware_pwm_waves(guest: Guest, plant: Plant) -> None:
    """Waves of the kernel's driver of a PCA9685, on the adapter's bus."""
    if (await guest.run("modprobe pwm-pca9685", check=False)).returncode:
        pytest.skip("the guest's kernel has no pwm-pca9685")
    adapter = await plant.i2c_adapter()
    chip = await adapter.attach(0x40, "models.chips.pca9685:Pca9685Target")
    bus = adapter.bus.removeprefix("/dev/i2c-")
    await guest.run(f"echo pca9685 0x40 > /sys/bus/i2c/devices/i2c-{bus}/new_device")
    body = f"""
from hal.ports.pwm import PwmChannel
import sys
async def at(channel):
    return await refused(hardware.pwm(PwmChannel("{bus}-0040", channel)))
async with hardware.pwm(PwmChannel("{bus}-0040", 3)) as wave:
    say(wave=wave.wave())
    for duty, frequency in ((0.1, 200), (1.0, 200), (0.0, 200), (0.25, 50), (0.75, 50)):
        wave.set_wave(duty, frequency)
        say(wave=wave.wave())
        sys.stdin.readline()
    say(why=[await at(3), await at(99)])
    async with hardware.pwm(PwmChannel("{bus}-0040", 4)) as other:
        try:
            other.set_wave(0.5, 60)
        except HalError as error:
            say(why=[error.fault.name, str(error)])
        other.set_wave(0.5, 50)
        try:
            wave.set_wave(0.5, 5e6)
        except HalError as error:
            say(why=[error.fault.name, str(error)])
    say(wave=wave.wave())
    sys.stdin.readline()
"""
    with trio.fail_after(LIMIT * 2):
        process = await program(guest, body)
        for duty, frequency in ((0.1, 200), (1.0, 200), (0.0, 200), (0.25, 50), (0.75, 50)):
            await process.wait_output(f'"wave": [{duty}, {frequency}]')
            assert await chip.call("duty", 3) == pytest.approx(duty, abs=0.01)
            assert await chip.get("frequency") == pytest.approx(frequency, rel=0.03)
            await process.write("\n")
        await process.wait_output('"UNSUPPORTED"')
        await process.write("\n")
        assert await process.wait() == 0, process.output
    found = [json.loads(line)["why"] for line in process.stdout.splitlines() if "why" in line]
    print(found)
    assert [fault for fault, _ in (*found[0], *found[1:])] == ["BUSY", "GONE", "BUSY", "UNSUPPORTED"]
    assert await chip.call("duty", 3) == 0.0
    assert await chip.call("duty", 4) == 0.0
    assert "pwm3" not in (await guest.run("ls /sys/class/pwm/pwmchip*/")).stdout

    # killed: the wave continues until the next program that uses the channel ends it
    body = f"""
from hal.ports.pwm import PwmChannel
async with hardware.pwm(PwmChannel("{bus}-0040", 5)) as wave:
    say(duty=wave.wave()[0])
    if "%s":
        wave.set_wave(0.5, 50)
        say(ready=True)
        await trio.sleep_forever()
"""
    with trio.fail_after(LIMIT * 2):
        process = await program(guest, body % "stay")
        await process.wait_output("ready")
        await process.signal(9)
        await process.wait()
        assert await chip.call("duty", 5) == pytest.approx(0.5, abs=0.01)
        assert await said(guest, body % "") == [{"duty": 0.0}]
        assert await chip.call("duty", 5) == 0.0

        # without permission, then without the chip
        body6 = f"""
from hal.ports.pwm import PwmChannel
say(why=await refused(hardware.pwm(PwmChannel("{bus}-0040", 6))))
"""
        assert (await said(guest, body6, user="hil"))[0]["why"][0] == "PERMISSION"
        process = await program(guest, body % "stay")
        await process.wait_output("ready")
        await adapter.unplug()
        await process.signal(15)
        await process.wait()
        fault, why = (await said(guest, body6))[0]["why"]
    assert fault == "GONE"
    assert "none at all" in why
