"""Installed files that a later release brings up to date."""

from __future__ import annotations

from pathlib import Path

from agent.install.install import INSTALLED, InstallRequest, install, uninstall
from agent.install.refresh import refresh_files
from agent.install.source import stage_package
from agent.install.target import InstallTarget
from agent.layout import PROGRAMS
from agent.supervise.units import server_unit
from tests.unit.agent.install.test_install import CONFIG, DEFAULTS, UNITS, put, target, tree

__all__ = ["target"]
UNIT = "etc/systemd/system/machine-server.service"


def test_units_of_a_former_release_are_replaced(target: InstallTarget) -> None:
    put(target)
    before = tree(target.root)
    written = refresh_files(CONFIG, DEFAULTS, target)
    assert set(written) == {f"/etc/systemd/system/{program}.service" for program in PROGRAMS}
    after = tree(target.root)
    assert after[UNIT] == server_unit(target.layout.__class__(), CONFIG)
    manifest = str((target.layout.state / INSTALLED).relative_to(target.root))
    assert {name for name in after if after[name] != before.get(name)} == {*(name[1:] for name in written), manifest}
    assert refresh_files(CONFIG, DEFAULTS, target) == ()


def test_an_edited_unit_stays(target: InstallTarget) -> None:
    put(target)
    edited = target.root / UNIT
    edited.write_text("[Service]\nExecStart=mine\n")
    assert refresh_files(CONFIG, DEFAULTS, target) == ("/etc/systemd/system/machine-agent.service",)
    assert edited.read_text() == "[Service]\nExecStart=mine\n"


def test_an_agent_that_was_not_installed_writes_nothing(target: InstallTarget) -> None:
    before = tree(target.root)
    assert refresh_files(CONFIG, DEFAULTS, target) == ()
    assert tree(target.root) == before


def test_the_removal_knows_the_files_of_the_later_release(target: InstallTarget) -> None:
    before = tree(target.root)
    install(target, InstallRequest(stage_package, UNITS), lambda line: None)
    refresh_files(CONFIG, DEFAULTS, target)
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert tree(target.root) == before
    assert not Path(target.root / UNIT).exists()
