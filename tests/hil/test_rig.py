"""The rig itself: it resumes quickly, is reachable from the host, and simulates faults faithfully."""

from __future__ import annotations

import json
import time
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import trio
from viam.components.sensor import Sensor

from tests.hil.rig.guest import Guest, open_guest
from tests.hil.rig.plant import Plant, PlantError
from tests.hil.rig.usb import QemuUsb
from tests.hil.rig.vm import VirtualMachine

READ_USB = """
import usb.core
device = usb.core.find(idVendor=0x1209)
print(device.serial_number, device.product)
device.ctrl_transfer(0x40, 2, 5, 0, b"abc")
print(bytes(device.ctrl_transfer(0xc0, 1, 5, 0, 3)))
device.write(1, b"hello")
print(bytes(device.read(0x81, 64)))
try:
    device.ctrl_transfer(0xc0, 9, 0, 0, 1)
except usb.core.USBError as error:
    print(error.errno)
"""


@pytest.mark.qemu("guests of User-Mode Linux have no saved state")
async def test_a_guest_is_resumed_and_not_booted(guest: Guest, vm: VirtualMachine) -> None:
    taken = time.monotonic() - vm.started
    print(f"resumed, clock set and source mounted in {taken:.2f} s; one second on a quiet computer")
    assert await guest.monotonic() > time.monotonic() - vm.started, "it had been running before it was saved"
    before = time.time()
    said = float((await guest.run("date +%s.%N")).stdout)
    assert before - 2 < said < time.time() + 2


ABOUT = """
import json, os, pathlib, signal, stat, sys
print(json.dumps({
    "account": [os.getresuid(), os.getresgid(), sorted(os.getgroups())],
    "process": [os.getsid(0) == os.getpid() == os.getpgid(0), os.getppid(), os.umask(0), os.getcwd()],
    "python": [sys.argv, sys.path[:3], __name__],
    "environment": {key: value for key, value in os.environ.items() if key not in ("_", "PWD", "SHLVL")},
    "descriptors": sorted(stat.S_IFMT(os.fstat(int(name)).st_mode) for name in os.listdir("/proc/self/fd")[:3]),
    "count": len(os.listdir("/proc/self/fd")),
    "owner": os.stat("/proc/self/status").st_uid,
    "rights": [line.partition("/")[2] if line.startswith("SigQ") else line  # not how many signals others have queued
               for line in pathlib.Path("/proc/self/status").read_text().splitlines()
               if line.startswith(("Cap", "Sig", "NoNewPrivs"))],
}))
sys.stderr.write(sys.stdin.read())
sys.exit(7)
"""


@pytest.mark.parametrize("user", ["", "hil"])
async def test_a_program_forked_from_the_warm_interpreter_behaves_like_any_other(guest: Guest, user: str) -> None:
    await guest.run("mkdir -p /tmp/about && chmod 755 /tmp/about")
    await guest.write("/tmp/about/about_me.py", ABOUT, 0o644)
    command = ["python3", "-m", "about_me", "one", "two words"]
    how: dict[str, Any] = {"user": user, "cwd": "/tmp/about", "env": {"PYTHONPATH": "/opt:/usr", "COLOUR": "red"}}
    ready, fresh = [await guest.run(command, input="said", check=False, fresh=fresh, **how) for fresh in (False, True)]
    assert json.loads(ready.stdout) == json.loads(fresh.stdout)
    assert (ready.returncode, ready.stderr) == (fresh.returncode, fresh.stderr) == (7, "said")


async def test_the_warm_interpreter_survives_failed_programs(guest: Guest) -> None:
    endless = await guest.start(["python3", "-m", "http.server", "--bind", "127.0.0.1"])
    await endless.wait_output("Serving")
    assert await endless.stop(SIGKILL) == -SIGKILL
    done = await guest.run("python3 -m nowhere.to_be_found", check=False)
    assert done.returncode == 1
    assert "No module named" in done.stderr
    first, second = await guest.start("python3 -m timeit pass"), await guest.start("python3 -m timeit pass")
    assert [await first.wait(), await second.wait()] == [0, 0]


async def test_programs_run_and_report_their_status(guest: Guest) -> None:
    done = await guest.run("echo out; echo err >&2; exit 3", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert (await guest.run("cat", input="through")).stdout == "through"
    with pytest.raises(AssertionError, match="ended with 1"):
        await guest.run("false")


async def test_a_program_is_watched_fed_and_signalled(guest: Guest) -> None:
    process = await guest.start("while read line; do echo got $line; done")
    await process.write("one\n")
    await process.wait_output("got one")
    assert await process.stop() == -15
    with pytest.raises(AssertionError, match="before it wrote"):
        await process.wait_output("never")


async def test_files_are_copied_both_ways(guest: Guest) -> None:
    content = bytes(range(256)) * 1000
    await guest.write("/root/file", content, 0o640)
    assert await guest.read("/root/file") == content
    assert (await guest.run("stat -c %a /root/file")).stdout == "640\n"
    with pytest.raises(FileNotFoundError):
        await guest.read("/nowhere")


async def test_an_unprivileged_account_has_no_access(guest: Guest) -> None:
    assert (await guest.user().run("id -un")).stdout == "hil\n"
    assert (await guest.user().run("cat /etc/shadow", check=False)).returncode == 1


async def test_processes_of_a_test_end_with_it(guest: Guest) -> None:
    await guest.start(["sleep", "1000"])
    await guest.run("setsid sleep 1000 </dev/null >/dev/null 2>&1 &")  # its session is another one
    await guest.start(["python3", "-m", "tests.hil.guest.wifi"])  # starts wpa_supplicant, and cannot end it when killed
    with trio.fail_after(60):
        while len((await guest.run("pgrep 'sleep|wpa_supplicant'", check=False)).stdout.split()) < 3:
            pass


async def test_processes_of_a_test_are_gone_in_the_next(guest: Guest) -> None:
    assert (await guest.run("pgrep -l 'sleep|wpa_supplicant'", check=False)).stdout == ""


async def test_simulated_chips_answer_refuse_stall_and_recover(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    chip = await adapter.attach(0x48, "models.chips.lm75:Lm75Target", temperature_c=21.5)

    async def read() -> tuple[int, str]:
        done = await guest.run(f"i2ctransfer -y {adapter.bus.removeprefix('/dev/i2c-')} w1@0x48 0 r2", check=False)
        return done.returncode, done.output.strip()

    with trio.fail_after(60):
        while await read() == (0, "0x00 0x00"):  # until the first conversion ends, 0.1 s after the chip is powered
            pass
    asked = await adapter.messages(0x48)
    assert await read() == (0, "0x15 0x80")
    await chip.set(temperature_c=-10.0)
    assert await read() == (0, "0xf6 0x00")
    assert await adapter.messages(0x48) == asked + 4
    await adapter.refuse(0x48)
    assert "No such device or address" in (await read())[1]
    await adapter.refuse(0x48, False)
    await adapter.stall()
    start = time.monotonic()
    assert (await read())[0] != 0
    assert time.monotonic() - start > 1.5  # the driver waits two seconds for the adapter
    await adapter.stall(False)
    assert (await read())[0] == 0
    await adapter.unplug()
    assert (await guest.run(["test", "-e", adapter.bus], check=False)).returncode == 1
    await adapter.plug()
    assert (await read())[0] == 0


async def test_lines_are_driven_read_and_watched(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio(names={3: "DOOR"})
    options = await guest.run("cat /sys/kernel/tracing/instances/*/trace_options")
    assert "norecord-cmd" in options.stdout.split()  # see GpioBank: otherwise the guest may hang
    await bank.pull(3, True)
    assert (await guest.run(f"gpioget {bank.chip} 3")).stdout == "1\n"
    holder = await guest.start(["gpioset", "--mode=signal", bank.chip, "4=1"])
    await bank.wait_value(4, True)
    await holder.stop()
    await bank.wait_value(4, False)  # released by the kernel: the line follows its pull again
    assert [(event["what"], event["high"]) for event in await bank.history(4)] == [
        ("set", True),
        ("requested", True),
        ("released", False),
    ]


async def test_an_encoder_is_turned(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    monitor = await guest.start(["gpiomon", "--num-events=8", "--format=%o %e", bank.chip, "5", "6"])
    with trio.fail_after(60):
        await bank.wait_event(6, "requested")
        await bank.quadrature(5, 6, 8, 100)
        assert await monitor.wait() == 0
    assert monitor.stdout.split("\n")[:4] == ["5 1", "6 1", "5 0", "6 0"]


async def test_a_serial_cable_carries_bytes_both_ways(guest: Guest) -> None:
    cable = await guest.usb.serial()
    process = await guest.start(f"exec 3<>{cable.by_id}; stty -F {cable.by_id} raw -echo; echo ready; head -1 <&3 >&3")
    await process.wait_output("ready")
    await cable.far.send_all(b"hello\n")
    with trio.fail_after(60):
        assert await cable.far.receive_some() == b"hello\n"
    await cable.unplug()
    await cable.plug("RIG0002")
    assert (await guest.run("ls /dev/serial/by-id")).stdout.count("RIG0002") == 1


@pytest.mark.qemu("in User-Mode Linux a cable ends with the test, as every program does")
async def test_a_cable_left_by_an_interrupted_test_is_removed(guest: Guest) -> None:
    await guest.usb.serial("RIG0003")
    later = QemuUsb(guest)  # of the next test, which has no information about it
    cable = await later.serial("RIG0004")
    assert (await guest.run("ls /dev/serial/by-id")).stdout.split() == [Path(cable.by_id).name]
    await later.clear()
    assert (await guest.run("ls /dev/serial/by-id", check=False)).stdout == ""


async def test_an_unresponsive_guest_is_replaced_for_the_next_test(
    vm: VirtualMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with type(vm)(vm.share) as mine:
        async with open_guest(mine) as guest:
            await guest.write("/root/old", "")
            await guest.host.freeze()
        monkeypatch.setattr("tests.hil.rig.guest.RESUME_LIMIT", 1.0)
        with pytest.raises(ExceptionGroup) as failed:
            await open_guest(mine).__aenter__()
        monkeypatch.undo()
        assert failed.group_contains(AssertionError, match="the guest did not answer within 1 s")
        async with open_guest(mine) as guest:
            assert (await guest.run("ls /root/old", check=False)).returncode
            assert not mine.hung


async def test_the_plant_simulates_any_usb_device(guest: Guest, plant: Plant) -> None:
    cable = await plant.usb(
        "tests.hil.guest.devices:Echo", name="Echo", serial="E1", endpoints={1: "bulk", 0x81: "bulk"}
    )
    said = (await guest.run(["python3", "-c", READ_USB])).stdout.splitlines()
    assert said == ["E1 Echo", "b'abc'", "b'hello'", "32"]
    await cable.unplug()
    await cable.plug("E2")
    assert (await guest.run(["python3", "-c", READ_USB])).stdout.startswith("E2 Echo")


async def test_the_plant_reports_unsupported_requests(plant: Plant) -> None:
    chip = await plant.make("models.chips.lm75:Lm75Target", temperature_c=1.0)
    with pytest.raises(PlantError, match="temprature"):
        await chip.set(temprature=2.0)


async def test_a_machine_runs_and_the_official_sdk_reaches_it(guest: Guest) -> None:
    document = {"components": [{"name": "t", "api": "rdk:component:sensor", "model": "fake"}]}
    async with guest.server(document) as server, server.sdk() as sdk:
        readings = await sdk(Sensor.from_robot(sdk.robot, "t").get_readings())
        assert readings == {"a": 1, "b": 2, "c": 3}
    assert "stopped" in server.log


async def test_wifi_radios_receive_each_other(guest: Guest) -> None:
    """A radio is an access point, another sees its network: drivers and programs are the kernel's and Debian's."""
    await guest.run("modprobe mac80211_hwsim radios=3; udevadm settle")
    names = sorted((await guest.run("iw dev | awk '/Interface/ {print $2}'")).stdout.split())
    assert len(names) == 3
    point, station, _ = names
    settings = f"interface={point}\\nssid=rig\\nhw_mode=g\\nchannel=1\\n"
    await guest.run(f"printf '{settings}' > /tmp/point.conf; hostapd -B /tmp/point.conf")
    with trio.fail_after(180):
        found = ""
        while "SSID: rig" not in found:  # a scan that begins too early receives no beacon
            found = (await guest.run(f"ip link set {station} up; iw dev {station} scan freq 2412", check=False)).stdout
