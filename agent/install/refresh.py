"""Installed files of the agent, brought up to date by a release that has replaced the one that installed them."""

from __future__ import annotations

from pathlib import Path

import structlog

from agent.install.install import INSTALLED, installed_files
from agent.install.target import ETC_UNITS, LOCAL_UNITS, InstallTarget
from agent.layout import AGENT, SERVER, Layout
from agent.supervise.units import AGENT_UNIT, agent_unit, server_unit
from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import parse_manifest

_log = structlog.get_logger("agent.install")


def refresh_files(config: Path, defaults: Path, target: InstallTarget | None = None) -> tuple[str, ...]:
    """Write the units and commands as this release installs them; return the paths of those that have changed.

    Does nothing if the agent was not installed. A file that a person has edited stays as it is, and is logged. systemd
    reads changed units at once, and applies them when it next starts the program. Call it at most after an agent was
    confirmed: a release on trial must leave the files of the former one. Blocks. OSError or MachineError if the
    manifest cannot be read or written.
    """
    target = target or InstallTarget()
    layout = Layout()
    manifest = target.inside(layout.state / INSTALLED)
    try:
        paths = parse_manifest(manifest.read_bytes()).files
    except FileNotFoundError:
        return ()
    folder = next((folder for folder in (LOCAL_UNITS, ETC_UNITS) if f"{folder}/{AGENT_UNIT}" in paths), None)
    if folder is None:
        return ()
    units = {AGENT: agent_unit(layout, config, defaults), SERVER: server_unit(layout, config)}
    desired = installed_files(target, folder, units)
    plan = apply_files(ManagedDisk(target.root), str(manifest.relative_to(target.root)), desired)
    for path, error in plan.problems.items():
        _log.warning("an installed file is not brought up to date", file=f"/{path}", reason=error.message)
    written = tuple(f"/{file.path}" for file in plan.write)
    if written:
        target.run(["systemctl", "daemon-reload"], check=False)
        _log.info("installed files were brought up to date", files=list(written))
    return written
