"""The checks of a device: each finding, with its remedy."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.diagnosis import checks, facts
from agent.diagnosis.checks import CHECKS, CheckedDevice, run_checks
from agent.diagnosis.facts import RadioFacts, Space, UnitFacts
from agent.diagnosis.finding import CheckFinding, Level, findings_table
from agent.layout import PROGRAMS, Layout
from agent.update import store
from agent.update.record import Release, ReleaseSlots, UpdateRecord
from schema.errors import ErrorKind, MachineError

CLOUD = {"app_address": "https://cloud.example", "id": "p1", "secret": "s3cret-of-the-part"}


@pytest.fixture
def device(tmp_path: Path) -> CheckedDevice:
    config = tmp_path / "machine.json"
    config.write_text(json.dumps({"cloud": CLOUD}))
    config.chmod(0o600)
    return CheckedDevice(Layout(tmp_path / "opt", tmp_path / "run"), config, tmp_path / "defaults.json", systemd=True)


async def finding(device: CheckedDevice, name: str) -> CheckFinding:
    return await CHECKS[name](device)


def install(layout: Layout) -> None:
    """Put a release of each program, and its record, on the disk."""
    layout.state.mkdir(parents=True)
    for program in PROGRAMS:
        release = Release("1.0.0", "0" * 64, 1, "https://cloud.example/file?signature=abcdef", "linux/x86_64")
        store.save(layout.record(program), UpdateRecord(program, ReleaseSlots(release)))
        folder = layout.release(program, release.sha256)
        folder.mkdir(parents=True)
        (folder / "run").write_text("#!/bin/sh\n")
        (folder / "run").chmod(0o755)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot be read: No such file"),
        ("{", "line 1, column"),
        ("{}", "has no `cloud.app_address`"),
        ('{"cloud": {"id": "p1", "secret": "s"}}', "app_address"),
        ('{"cloud": {"app_address": "ftp://x", "id": "p1", "secret": "s"}}', "is not a valid address of a cloud"),
    ],
)
async def test_credentials_that_cannot_be_used(device: CheckedDevice, content: str | None, text: str) -> None:
    device.config.unlink() if content is None else device.config.write_text(content)
    results = {finding.check: finding for finding in await run_checks_offline(device)}
    assert results["credentials"].level is Level.FAIL
    assert text in f"{results['credentials'].text} {results['credentials'].remedy}"
    assert results["dns"].level is results["cloud"].level is Level.SKIPPED


async def run_checks_offline(device: CheckedDevice) -> list[CheckFinding]:
    """Run all checks, which may use loopback only."""
    return await run_checks(CheckedDevice(device.layout, device.config, device.defaults, systemd=False))


async def test_credentials_that_others_can_read(device: CheckedDevice) -> None:
    device.config.chmod(0o644)
    result = await finding(device, "credentials")
    assert (result.level, result.remedy) == (Level.WARN, f"chmod 600 {device.config}")


async def test_no_finding_contains_a_secret(device: CheckedDevice) -> None:
    assert "s3cret" not in repr(await finding(device, "credentials"))


@pytest.mark.parametrize(
    ("unit", "level", "text"),
    [
        (None, Level.FAIL, "systemd does not answer"),
        (UnitFacts("not-found", "inactive"), Level.FAIL, "is not-found"),
        (UnitFacts("loaded", "failed", "enabled", 3), Level.FAIL, "failed, enabled, 3 restarts"),
        (UnitFacts("loaded", "active", "disabled"), Level.WARN, "active, disabled"),
        (UnitFacts("loaded", "active", "enabled", 2), Level.WARN, "2 restarts"),
        (UnitFacts("loaded", "active", "enabled"), Level.PASS, "active, enabled, 0 restarts"),
    ],
)
async def test_the_unit_of_the_agent(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, unit: UnitFacts | None, level: Level, text: str
) -> None:
    monkeypatch.setattr(facts, "unit", lambda name: unit)
    result = await finding(device, "machine-agent")
    assert result.level is level
    assert text in result.text
    assert bool(result.remedy) is (level is not Level.PASS)


async def test_releases_that_are_installed(device: CheckedDevice) -> None:
    install(device.layout)
    assert (await finding(device, "releases"))[1:3] == (Level.PASS, "machine-agent 1.0.0, machine-server 1.0.0")


async def test_a_release_whose_program_is_missing(device: CheckedDevice) -> None:
    install(device.layout)
    path = device.layout.release("machine-server", "0" * 64) / "run"
    path.unlink()
    result = await finding(device, "releases")
    assert (result.level, result.text) == (Level.FAIL, f"{path} of machine-server 1.0.0 cannot be executed")


async def test_a_record_that_is_damaged_in_both_copies(device: CheckedDevice) -> None:
    install(device.layout)
    device.layout.record("machine-agent").write_bytes(b"x")
    device.config.write_text(json.dumps({"cloud": {**CLOUD, "app_address": "http://127.0.0.1:1"}}))
    (results,) = [result for result in await run_checks_offline(device) if result.check == "releases"]
    assert results.level is Level.FAIL
    assert str(device.layout.record("machine-agent")) in results.text


@pytest.mark.parametrize(
    ("space", "level"),
    [
        (None, Level.WARN),
        (Space(100 << 20, 10**6), Level.FAIL),
        (Space(500 << 20, 10**6), Level.WARN),
        (Space(5 << 30, 10**6), Level.PASS),
        (Space(5 << 30, -1), Level.PASS),
        (Space(5 << 30, 12), Level.FAIL),
    ],
)
async def test_free_space(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, space: Space | None, level: Level
) -> None:
    monkeypatch.setattr(facts, "space", lambda path: space)
    assert (await finding(device, "disk")).level is level


@pytest.mark.parametrize(
    ("name", "function", "values"),
    [
        ("clock", "clock_is_synchronized", {None: Level.SKIPPED, False: Level.WARN, True: Level.PASS}),
        (
            "cgroups",
            "control_groups",
            {None: Level.WARN, frozenset({"cpu"}): Level.WARN, frozenset({"cpu", "memory"}): Level.PASS},
        ),
        (
            "radio",
            "radios",
            {
                (): Level.SKIPPED,
                (RadioFacts("wlan0", "by software"),): Level.WARN,
                (RadioFacts("wlan0", ""),): Level.PASS,
            },
        ),
    ],
)
async def test_the_system(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, name: str, function: str, values: dict[Any, Level]
) -> None:
    for value, level in values.items():
        monkeypatch.setattr(facts, function, lambda value=value: value)
        result = await finding(device, name)
        assert result.level is level, (value, result)


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """Listen on a free port of loopback while the context is open."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        yield listener.socket.getsockname()[1]


async def test_a_port_that_another_program_uses(device: CheckedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "unit", lambda name: UnitFacts("loaded", "inactive"))
    async with listening() as port:
        monkeypatch.setattr(checks, "SERVER_PORT", port)
        assert (await finding(device, "port")).level is Level.WARN
    assert (await finding(device, "port")).level is Level.PASS


@pytest.mark.parametrize(
    ("content", "level"),
    [(f'{{"pid": {os.getpid()}, "addresses": []}}', Level.PASS), ('{"pid": 0}', Level.WARN), ("[]", Level.WARN)],
)
async def test_the_port_of_a_machine_server_that_no_unit_starts(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, content: str, level: Level
) -> None:
    monkeypatch.setattr(facts, "unit", lambda name: UnitFacts("loaded", "inactive"))
    device.layout.run.mkdir(parents=True, exist_ok=True)
    (device.layout.run / "machine-server.address").write_text(content)
    async with listening() as port:
        monkeypatch.setattr(checks, "SERVER_PORT", port)
        assert (await finding(device, "port")).level is level


def cloud_that(answer: Callable[[], None]) -> Callable[..., Any]:
    async def sign_in(address: object) -> None:
        answer()

    return sign_in


async def test_a_cloud_that_accepts_the_machine(device: CheckedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_sign_in", cloud_that(lambda: None))
    result = await finding(device, "cloud")
    assert (result.level, result.text) == (Level.PASS, "https://cloud.example accepts this machine, by TLS")
    device.config.write_text(json.dumps({"cloud": {**CLOUD, "app_address": "http://cloud.example"}}))
    plain = await finding(CheckedDevice(device.layout, device.config, device.defaults, systemd=True), "cloud")
    assert (plain.level, plain.text) == (Level.WARN, "http://cloud.example accepts this machine, without encryption")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [(ErrorKind.UNAUTHENTICATED, "copy the credentials"), (ErrorKind.UNAVAILABLE, "check the network and firewall")],
)
async def test_a_cloud_that_refuses(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, kind: ErrorKind, remedy: str
) -> None:
    def refuse() -> None:
        raise MachineError("refused", kind=kind)

    monkeypatch.setattr(checks, "_sign_in", cloud_that(refuse))
    result = await finding(device, "cloud")
    assert (result.level, result.text) == (Level.FAIL, "refused")
    assert remedy in result.remedy


async def test_a_check_that_hangs_is_reported(
    device: CheckedDevice, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    async def hang(device: CheckedDevice) -> CheckFinding:
        await trio.sleep_forever()

    monkeypatch.setattr(checks, "CHECKS", {"slow": hang})
    assert await run_checks(device) == [CheckFinding("slow", Level.FAIL, "no answer within 20 s")]


def test_facts_of_a_device_tree(tmp_path: Path) -> None:
    wlan = tmp_path / "sys/class/net/wlan0/phy80211/rfkill0"
    wlan.mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0").mkdir()
    assert facts.radios(tmp_path) == (RadioFacts("wlan0", ""),)
    (wlan / "soft").write_text("1\n")
    assert facts.radios(tmp_path) == (RadioFacts("wlan0", "by software"),)
    (wlan / "hard").write_text("1\n")
    assert facts.radios(tmp_path) == (RadioFacts("wlan0", "by a switch"),)
    assert facts.control_groups(tmp_path) is None
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu memory\n")
    assert facts.control_groups(tmp_path) == frozenset({"cpu", "memory"})


def test_the_space_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert facts.space(tmp_path / "a" / "b") is not None


def test_remedies_are_below_their_findings() -> None:
    text = findings_table(
        [CheckFinding("disk", Level.FAIL, "full", "free some space"), CheckFinding("clock", Level.PASS, "ok")]
    )
    assert text == "fail    disk   full\n               -> free some space\npass    clock  ok\n"
