"""The checks of `machine agent check`: one function for each, which returns a finding and never raises.

They need neither a running agent nor systemd, and change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trio

from agent.diagnosis import facts
from agent.diagnosis.finding import CheckFinding, Level
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.update import store
from agent.update.steps import release_to_start
from rpc.api import ApiClient
from schema import ErrorKind, MachineError
from schema.document import decode_document
from support.files.private import is_open
from uplink import CloudAddress, address_of

NETWORK_LIMIT: Final = 10.0  # seconds for each check of the network
SERVER_PORT: Final = 8080  # default of machine-server
MIB: Final = 1 << 20
TOO_LITTLE: Final = 200 * MIB  # an update of one program needs about this much
LITTLE: Final = 1024 * MIB
FEW_FILES: Final = 10_000
NO_CREDENTIALS: Final = "not checked, because there are no usable credentials"


@dataclass(frozen=True)
class CheckedDevice:
    """What is checked."""

    layout: Layout = field(default_factory=Layout)
    config: Path = Path("/etc/machine.json")
    defaults: Path = Path("/etc/machine-defaults.json")
    systemd: bool = field(default_factory=facts.has_systemd)

    @cached_property
    def address(self) -> CloudAddress:
        """The address of the cloud. Raises MachineError with path and remedy if the credentials cannot be used."""
        try:
            document = decode_document(self.config.read_bytes())
        except OSError as error:
            raise MachineError(
                f"{self.config} cannot be read: {error.strerror}",
                remedy="copy the credentials from the machine's page in the cloud to this file",
            ) from None
        if document.document is None:
            raise MachineError(f"{self.config}: {document.problems[0]}")
        if document.document.cloud is None or not document.document.cloud.app_address:
            raise MachineError(
                f"{self.config} has no `cloud.app_address`",
                remedy="copy the credentials from the machine's page in the cloud to this file",
            )
        return address_of(document.document.cloud, self.config.parent)

    @cached_property
    def credentials(self) -> CloudAddress | None:
        """The address of the cloud; None if the credentials cannot be used."""
        try:
            return self.address
        except MachineError:
            return None


async def run_checks(device: CheckedDevice) -> list[CheckFinding]:
    """Run all checks, those of the network side by side; return their findings in the order of CHECKS."""
    results: dict[str, CheckFinding] = {}

    async def run(name: str, check: Callable[[CheckedDevice], Awaitable[CheckFinding]]) -> None:
        try:
            with trio.fail_after(2 * NETWORK_LIMIT):
                results[name] = await check(device)
        except trio.TooSlowError:
            results[name] = CheckFinding(name, Level.FAIL, f"no answer within {2 * NETWORK_LIMIT:g} s")
        except (MachineError, OSError) as error:
            results[name] = CheckFinding(
                name, Level.FAIL, getattr(error, "message", str(error)), getattr(error, "remedy", "")
            )

    async with trio.open_nursery() as nursery:
        for name, check in CHECKS.items():
            nursery.start_soon(run, name, check)
    return [results[name] for name in CHECKS]


async def _credentials(device: CheckedDevice) -> CheckFinding:
    name = "credentials"
    address = device.address
    if is_open(device.config):
        text = f"{device.config} can be read by other users"
        return CheckFinding(name, Level.WARN, text, f"chmod 600 {device.config}")
    return CheckFinding(name, Level.PASS, f"{device.config}: part {address.part} at {address.url}")


async def _agent(device: CheckedDevice) -> CheckFinding:
    return _unit(device, AGENT)


async def _server(device: CheckedDevice) -> CheckFinding:
    return _unit(device, SERVER)


def _unit(device: CheckedDevice, program: str) -> CheckFinding:
    if not device.systemd:
        return CheckFinding(program, Level.SKIPPED, "systemd is not the init process of this computer")
    unit = facts.unit(f"{program}.service")
    if unit is None:
        return CheckFinding(program, Level.FAIL, "systemd does not answer", "check `systemctl status`")
    if unit.load != "loaded":
        text = f"the unit {program}.service is {unit.load or 'unknown'}"
        return CheckFinding(program, Level.FAIL, text, "install it with `machine-agent --install`")
    text = f"{unit.active}, {unit.enabled or 'not enabled'}, {unit.restarts} restarts"
    if unit.active != "active":
        remedy = f"start it with `systemctl start {program}`; `journalctl -u {program} -n 50` says why it ended"
        return CheckFinding(program, Level.FAIL, text, remedy)
    if program == AGENT and unit.enabled == "disabled":
        return CheckFinding(program, Level.WARN, text, f"start it at boot with `systemctl enable {program}`")
    if unit.restarts:
        return CheckFinding(program, Level.WARN, text, f"`journalctl -u {program} -n 50` says why it was restarted")
    return CheckFinding(program, Level.PASS, text)


async def _releases(device: CheckedDevice) -> CheckFinding:
    """Check that the release of each program that is to run is on the disk, and that its record can be read."""
    name, versions = "releases", []
    reinstall = "install again with `machine-agent --install`; see docs/howto/recover-a-machine-by-hand.md"
    for program in PROGRAMS:
        loaded = store.load(device.layout.record(program))
        if loaded.record is None:
            return CheckFinding(name, Level.WARN, f"{program} is not installed", reinstall)
        release = release_to_start(loaded.record)
        path = device.layout.release(program, release.sha256) / "run"
        if not os.access(path, os.X_OK):
            return CheckFinding(
                name, Level.FAIL, f"{path} of {program} {release.version} cannot be executed", reinstall
            )
        versions.append(f"{program} {release.version}")
        if loaded.report:
            return CheckFinding(name, Level.WARN, loaded.report, "no action is needed: the copy is used")
    return CheckFinding(name, Level.PASS, ", ".join(versions))


async def _disk(device: CheckedDevice) -> CheckFinding:
    name, root = "disk", device.layout.root
    free = facts.space(root)
    if free is None:
        return CheckFinding(name, Level.WARN, f"the free space of {root} is not known")
    remedy = "free some space: `journalctl --vacuum-size=100M`, `apt-get clean`, captured data"
    text = f"{free.free // MIB} MiB free for {root}"
    if 0 <= free.files < FEW_FILES:
        return CheckFinding(name, Level.FAIL, f"{text}, but room for {free.files} more files only", "delete some files")
    if free.free < TOO_LITTLE:
        return CheckFinding(name, Level.FAIL, f"{text}: too little for an update", remedy)
    return CheckFinding(
        name, Level.WARN if free.free < LITTLE else Level.PASS, text, remedy if free.free < LITTLE else ""
    )


async def _clock(device: CheckedDevice) -> CheckFinding:
    synchronized = facts.clock_is_synchronized()
    if synchronized is None:
        return CheckFinding("clock", Level.SKIPPED, "timedatectl is not available")
    if not synchronized:
        text = "the clock is not synchronized: certificates may seem expired, and logs have wrong times"
        return CheckFinding("clock", Level.WARN, text, "`timedatectl set-ntp true`, and allow UDP to port 123")
    return CheckFinding("clock", Level.PASS, "synchronized")


async def _dns(device: CheckedDevice) -> CheckFinding:
    if device.credentials is None:
        return CheckFinding("dns", Level.SKIPPED, NO_CREDENTIALS)
    host = urlsplit(device.credentials.url).hostname or ""
    try:
        with trio.fail_after(NETWORK_LIMIT):
            entries = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    except trio.TooSlowError:
        text = f"{host} was not resolved within {NETWORK_LIMIT:g} s"
        return CheckFinding("dns", Level.FAIL, text, "check the network and `resolvectl status`")
    except OSError as error:
        text = f"{host} cannot be resolved: {error.strerror}"
        return CheckFinding(
            "dns", Level.FAIL, text, "check /etc/resolv.conf and `resolvectl status`, or correct app_address"
        )
    return CheckFinding("dns", Level.PASS, f"{host} is {', '.join(sorted({str(entry[4][0]) for entry in entries}))}")


async def _cloud(device: CheckedDevice) -> CheckFinding:
    """Check that the cloud can be reached, by TLS if its address says so, and accepts the credentials."""
    address = device.credentials
    if address is None:
        return CheckFinding("cloud", Level.SKIPPED, NO_CREDENTIALS)
    with trio.fail_after(NETWORK_LIMIT):
        try:
            await _sign_in(address)
        except MachineError as error:
            remedy = error.remedy
            if error.kind in (ErrorKind.UNAUTHENTICATED, ErrorKind.PERMISSION):
                remedy = f"copy the credentials from the machine's page again to {device.config}"
            remedy = remedy or "check the network and firewall; `machine-cloud doctor` checks the cloud itself"
            return CheckFinding("cloud", Level.FAIL, error.message, remedy)
    how = "by TLS" if address.secure else "without encryption"
    remedy = "" if address.secure else "use https:// in app_address, unless the cloud is on this computer"
    local = urlsplit(address.url).hostname in ("localhost", "127.0.0.1", "::1")
    level = Level.PASS if address.secure or local else Level.WARN
    return CheckFinding("cloud", level, f"{address.url} accepts this machine, {how}", "" if local else remedy)


async def _sign_in(address: CloudAddress) -> None:
    """Make a call that every machine may make. Raises MachineError."""
    async with address.channel() as channel:
        await ApiClient(channel).call("viam.app.v1.RobotService", "", "needs_restart", id=address.part)


async def _control_groups(device: CheckedDevice) -> CheckFinding:
    name, controllers = "cgroups", facts.control_groups()
    if controllers is None:
        text = "control groups version 2 are not mounted: machine-server runs without limits of its own"
        return CheckFinding(name, Level.WARN, text, "boot with `systemd.unified_cgroup_hierarchy=1`")
    if "memory" not in controllers:
        text = "the memory controller is off: the memory of machine-server cannot be limited"
        return CheckFinding(
            name, Level.WARN, text, "add `cgroup_enable=memory` to the kernel's command line (cmdline.txt)"
        )
    return CheckFinding(name, Level.PASS, f"controllers: {', '.join(sorted(controllers))}")


async def _port(device: CheckedDevice) -> CheckFinding:
    """Check that no other program has the port while machine-server does not run."""
    if device.systemd and (unit := facts.unit(f"{SERVER}.service")) is not None and unit.active == "active":
        return CheckFinding("port", Level.PASS, "machine-server runs")
    if facts.runs((device.layout.run / SERVER).with_suffix(".address")):  # without systemd
        return CheckFinding("port", Level.PASS, "machine-server runs")
    try:
        with trio.fail_after(NETWORK_LIMIT):
            stream = await trio.open_tcp_stream("127.0.0.1", SERVER_PORT)
    except (OSError, trio.TooSlowError):
        return CheckFinding("port", Level.PASS, f"port {SERVER_PORT} is free")
    await trio.aclose_forcefully(stream)
    text = f"another program uses port {SERVER_PORT}"
    return CheckFinding(
        "port", Level.WARN, text, f"`ss -ltnp 'sport = :{SERVER_PORT}'` names it; or set network.bind_address"
    )


async def _radio(device: CheckedDevice) -> CheckFinding:
    radios = facts.radios()
    if not radios:
        return CheckFinding("radio", Level.SKIPPED, "this computer has no wifi interface")
    for radio in radios:
        if radio.blocked:
            remedy = (
                "`rfkill unblock wifi`, and set the country: `iw reg set CH`" if "software" in radio.blocked else ""
            )
            return CheckFinding("radio", Level.WARN, f"{radio.name} is blocked {radio.blocked}", remedy)
    return CheckFinding("radio", Level.PASS, ", ".join(radio.name for radio in radios))


CHECKS: Final[dict[str, Callable[[CheckedDevice], Awaitable[CheckFinding]]]] = {
    "credentials": _credentials,
    AGENT: _agent,
    SERVER: _server,
    "releases": _releases,
    "disk": _disk,
    "clock": _clock,
    "dns": _dns,
    "cloud": _cloud,
    "cgroups": _control_groups,
    "port": _port,
    "radio": _radio,
}
"""All checks by name, in the order in which they are shown."""
