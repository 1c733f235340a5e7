"""The system configuration with the real journald and systemd: limits, forwarding across a power cut, undoing."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from agent.system import journald
from tests.hil.guest.configurator import ROOT
from tests.hil.image.contents import SOURCE
from tests.hil.rig.guest import Guest

pytestmark = pytest.mark.systemd

UNIT = "machine-agent.service"
LIMIT = 60.0
BINARY = """
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("/run/systemd/journal/socket")
message = b"bytes \\x01\\xff end"
s.send(b"SYSLOG_IDENTIFIER=probe\\nMESSAGE\\n" + len(message).to_bytes(8, "little") + message + b"\\n")
s.send(b"SYSLOG_IDENTIFIER=probe\\nMESSAGE=huge " + b"x" * 20000 + b"\\n")
"""
APT_GET = """#!/bin/sh
echo "$*" >> /root/apt-calls
[ "$1" = upgrade ] || exit 0
echo begun > /root/apt-begun
read line < /root/apt-go
echo finished > /root/apt-end
echo "2 upgraded, 0 newly installed, 0 to remove and 0 not upgraded."
"""


async def until(condition: Callable[[], Awaitable[Any]], explain: str) -> Any:
    with trio.move_on_after(LIMIT):
        while True:
            if result := await condition():
                return result
            await trio.sleep(0.2)
    raise AssertionError(f"it did not happen within {LIMIT:g} s: {explain}")


async def text(guest: Guest, path: str) -> str:
    return (await guest.run(f"cat {path} 2>/dev/null || true")).stdout


async def start(guest: Guest, system: dict[str, Any], **advanced: Any) -> None:
    """Start the agent's part as a unit, with these settings."""
    await guest.write(
        "/root/settings.json", json.dumps({"system_configuration": system, "advanced_settings": advanced})
    )
    await guest.run("rm -f /root/state.json")
    properties = f"-p KillMode=mixed -p WorkingDirectory={SOURCE} -p RuntimeDirectory=machine"
    await guest.run(
        f"systemd-run --quiet --collect --unit={UNIT} {properties} -p RuntimeDirectoryPreserve=yes "
        "--setenv=PATH=/root/bin:$PATH python3 -m tests.hil.guest.configurator"
    )


async def stop(guest: Guest, *options: str) -> None:
    await guest.run(["systemctl", *(options or ("stop",)), UNIT])
    await until(lambda: _ended(guest), "the unit ends")


async def _ended(guest: Guest) -> bool:
    return (await guest.run(f"systemctl is-active {UNIT} || true")).stdout.strip() in ("inactive", "unknown", "failed")


async def state(guest: Guest) -> dict[str, Any]:
    return dict(json.loads(await text(guest, "/root/state.json") or "{}"))


async def journald_process(guest: Guest) -> str:
    return (await guest.run("systemctl show -P MainPID systemd-journald")).stdout.strip()


async def received(guest: Guest, logger: str = "probe") -> list[str]:
    """Return the messages of a program that the cloud has received."""
    entries = [json.loads(line) for line in (await text(guest, "/root/received")).splitlines()]
    return [entry["message"] for entry in entries if entry["logger"].startswith(logger)]


async def test_limits_are_applied_and_journald_is_restarted_only_for_a_change(guest: Guest) -> None:
    before = await journald_process(guest)
    await start(guest, {"logging_journald_system_max_use_megabytes": 32})
    await until(lambda: text(guest, f"/{journald.PATH}"), "the file is written")
    process = await until(lambda: _another(guest, before), "journald is restarted")
    usage = "journalctl -b -o cat -t systemd-journald"
    await until(lambda: _contains(guest, usage, "max 32.0M"), "journald uses the limit")
    await stop(guest)
    await start(guest, {"logging_journald_system_max_use_megabytes": 32})
    await until(lambda: _state_has(guest, f"/{journald.PATH}"), "the state names the file")
    await guest.run("logger -t probe settled")
    assert await journald_process(guest) == process
    await stop(guest)


async def test_entries_are_forwarded_across_a_power_cut(guest: Guest) -> None:
    forwarding = {"logging_journald_system_max_use_megabytes": 32, "forward_system_logs": "all"}
    await start(guest, forwarding)
    await until(lambda: text(guest, f"{ROOT}/queue/journal/place"), "the place is stored")
    await guest.run("logger -t probe hello")
    await guest.run(["python3", "-c", BINARY])
    await until(lambda: _count(guest, 3), "three entries are received")
    messages = await received(guest)
    assert messages[0] == "hello"
    assert messages[1] == "bytes \x01\ufffd end"
    assert messages[2].startswith("(message larger than 4096 bytes")
    uploads = (await guest.run(f"journalctl -o cat -u {UNIT} | grep -c ^uploaded")).stdout
    assert int(uploads) < 20  # its own output is not forwarded

    await stop(guest)
    await guest.run("touch /root/offline")
    await start(guest, forwarding)
    await until(lambda: _follows(guest), "journalctl runs")
    await guest.run("for n in $(seq 40); do echo queued $n; done | logger -t probe")
    await until(lambda: _contains(guest, f"cat {ROOT}/queue/journal/*.segment", "queued 40"), "it is queued")
    await guest.run("journalctl --sync; sync")
    place = await text(guest, f"{ROOT}/queue/journal/place")
    await guest.power_cut()
    await guest.boot()
    await guest.run("journalctl --flush")  # as systemd-journal-flush.service, which is masked in the guest
    await guest.run("for n in $(seq 40); do echo missed $n; done | logger -t probe; journalctl --sync")
    assert await text(guest, f"{ROOT}/queue/journal/place") == place
    process = await journald_process(guest)
    await guest.run("rm /root/offline")
    await start(guest, forwarding)
    await until(lambda: _has(guest, "missed 40"), "entries of the time without an agent arrive")
    after = await received(guest)
    for name in ("queued", "missed"):
        assert {f"{name} {n}" for n in range(1, 41)} <= set(after), "entries were lost"
    print(f"{len(after)} entries, {len(after) - len(set(after))} of them repeated")
    assert len(after) - len(set(after)) <= 40  # those after the stored place
    assert after.count("hello") == 1
    assert [message for message in after if message.startswith("missed")] == [f"missed {n}" for n in range(1, 41)]

    await guest.run("systemctl restart systemd-journald; logger -t probe restarted; journalctl --rotate")
    await guest.run("logger -t probe rotated")
    await until(lambda: _has(guest, "rotated"), "entries after a rotation arrive")
    assert (await received(guest)).count("restarted") == 1
    await stop(guest)

    await guest.run("logger -t probe gone; journalctl --rotate; journalctl --vacuum-files=1; logger -t probe kept")
    await start(guest, forwarding)
    await until(lambda: _has(guest, "kept"), "it continues although the journal before the cursor was deleted")
    await stop(guest)

    process = await journald_process(guest)
    await start(guest, forwarding, disable_system_configuration=True)
    await until(lambda: _another(guest, process), "journald is restarted")
    left = f"ls /{journald.PATH} {ROOT}/queue/journal {ROOT}/state/system-files.json 2>/dev/null || true"
    await until(lambda: _empty(guest, left), "everything is removed")
    assert (await state(guest))["problems"] == []
    await stop(guest)


async def test_apt_is_not_interrupted_by_the_end_of_the_agent(guest: Guest) -> None:
    await guest.run("mkdir -p /root/bin; mkfifo /root/apt-go")
    await guest.write("/root/bin/apt-get", APT_GET, 0o755)
    await start(guest, {"os_auto_upgrade_type": "managed-all"})
    await until(lambda: text(guest, "/root/apt-begun"), "the upgrade begins")
    assert "machine-agent-apt.scope" in await text(guest, "/proc/$(pgrep -f 'apt-get upgrade' | head -1)/cgroup")
    await stop(guest, "kill", "--signal=KILL", "--kill-whom=all")
    await guest.run("echo go > /root/apt-go")
    await until(lambda: text(guest, "/root/apt-end"), "the upgrade ends by itself")
    await guest.run("rm -f /root/bin/apt-get; ln -s /bin/true /root/bin/apt-get")
    await start(guest, {"os_auto_upgrade_type": "managed-all"})
    await until(lambda: _outcome(guest), "the upgrade is repeated, because its outcome is not known")
    await stop(guest)


async def _another(guest: Guest, before: str) -> str:
    process = await journald_process(guest)
    return process if process not in ("0", before) else ""


async def _contains(guest: Guest, command: str, part: str) -> bool:
    return part in (await guest.run(f"{command} 2>/dev/null || true")).stdout


async def _empty(guest: Guest, command: str) -> bool:
    return not (await guest.run(command)).stdout.strip()


async def _state_has(guest: Guest, path: str) -> bool:
    return path in (await state(guest)).get("files", ())


async def _outcome(guest: Guest) -> bool:
    return "packages upgraded" in (await state(guest)).get("outcome", "")


async def _follows(guest: Guest) -> bool:
    return bool((await guest.run("pgrep -f 'journalctl.*--follow' || true")).stdout)


async def _count(guest: Guest, count: int) -> bool:
    return len(await received(guest)) >= count


async def _has(guest: Guest, message: str) -> bool:
    return message in await received(guest)
