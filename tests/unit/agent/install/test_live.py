"""Installation into a running system: its systemd is a script that records the commands and enables units."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from agent.install.commands import interpreter_warnings
from agent.install.install import InstallRequest, install, uninstall
from agent.install.source import stage_package
from agent.install.target import InstallTarget
from agent.layout import PROGRAMS, Layout
from agent.supervise.units import RESTART_PAUSE
from agent.system import journald
from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import WantedFile
from agent.system.state import MANIFEST, RECORD, SystemRecord
from schema.errors import MachineError

UNITS = {program: f"# Written by machine-agent.\n[Service]\nExecStart={program}\n" for program in PROGRAMS}
CONFIG, DEFAULTS = Path("/etc/machine.json"), Path("/etc/machine-defaults.json")
SYSTEMCTL = r"""#!/bin/sh
echo "$@" >> "$FAKE/calls"
wants=$FAKE/root/etc/systemd/system/multi-user.target.wants
case "$1" in
  is-active) [ -e "$FAKE/active/$2" ] && echo active || { echo inactive; exit 3; } ;;
  is-enabled) [ -L "$wants/$2" ] && echo enabled || { echo disabled; exit 1; } ;;
  start|restart)
    for unit; do :; done
    if [ -e "$FAKE/fails" ]; then echo "Job for $unit failed." >&2; exit 1; fi
    : > "$FAKE/active/$unit" ;;
  stop) rm -f "$FAKE/active/$2" ;;
  reenable)
    mkdir -p "$wants"
    for folder in usr/local/lib/systemd/system etc/systemd/system; do
      [ -e "$FAKE/root/$folder/$2" ] && ln -sfn "/$folder/$2" "$wants/$2" && break
    done ;;
  disable) for unit; do :; done; rm -f "$wants/$unit" "$FAKE/active/$unit" ;;
esac
exit 0
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallTarget:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "active").mkdir()
    (tmp_path / "systemd-path").write_text("/etc/systemd/system")
    for name, text in (
        ("systemctl", SYSTEMCTL),
        ("journalctl", "#!/bin/sh\n"),
        ("systemd-path", '#!/bin/sh\ncat "$FAKE/systemd-path"\n'),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    root = tmp_path / "root"
    (root / "run/systemd/system").mkdir(parents=True)
    (root / "etc/systemd/system").mkdir(parents=True)
    (root / "opt").mkdir()
    return InstallTarget(root)


def put(target: InstallTarget) -> list[str]:
    said: list[str] = []
    install(target, InstallRequest(stage_package, UNITS), said.append)
    return said


def active(target: InstallTarget) -> set[str]:
    return {path.name for path in (target.root.parent / "active").iterdir()}


def enabled(target: InstallTarget) -> dict[str, str]:
    wants = target.root / "etc/systemd/system/multi-user.target.wants"
    return {path.name: os.readlink(path) for path in wants.iterdir()} if wants.exists() else {}


def calls(target: InstallTarget) -> list[str]:
    return (target.root.parent / "calls").read_text().splitlines()


def test_both_units_are_enabled_and_the_agent_is_started(target: InstallTarget) -> None:
    said = put(target)
    assert enabled(target) == {f"{name}.service": f"/etc/systemd/system/{name}.service" for name in PROGRAMS}
    assert active(target) == {"machine-agent.service"}
    assert said[-1] == "machine-agent: started"


def test_a_running_agent_is_stopped_while_its_records_are_written(target: InstallTarget) -> None:
    put(target)
    before = len(calls(target))
    put(target)
    again = calls(target)[before:]
    assert again.index("stop machine-agent.service") < again.index("restart machine-agent.service")
    assert "stop machine-server.service" not in again


def test_a_running_agent_is_started_again_if_the_installation_fails(target: InstallTarget) -> None:
    put(target)
    unit = target.root / "etc/systemd/system/machine-server.service"
    unit.write_text("changed by a person")
    with pytest.raises(MachineError, match="was not overwritten"):
        put(target)
    assert calls(target)[-1] == "start --no-block machine-agent.service"


def test_a_unit_that_was_disabled_stays_disabled(target: InstallTarget) -> None:
    put(target)
    (target.root / "etc/systemd/system/multi-user.target.wants/machine-server.service").unlink()
    put(target)
    assert enabled(target).keys() == {"machine-agent.service"}


def test_units_of_an_image_move_to_the_place_that_the_running_systemd_prefers(target: InstallTarget) -> None:
    put(target)
    (target.root.parent / "systemd-path").write_text("/etc/systemd/system:/usr/local/lib/systemd/system")
    put(target)
    place = "/usr/local/lib/systemd/system"
    assert enabled(target) == {f"{name}.service": f"{place}/{name}.service" for name in PROGRAMS}
    assert not (target.root / "etc/systemd/system/machine-agent.service").exists()


def test_a_unit_that_would_replace_that_of_the_agent_is_refused(target: InstallTarget) -> None:
    (target.root.parent / "systemd-path").write_text("/etc/systemd/system:/usr/local/lib/systemd/system")
    unit = target.root / "etc/systemd/system/machine-server.service"
    unit.write_text("# Written by machine-server -install.\n[Service]\nExecStart=/usr/local/bin/machine-server\n")
    with pytest.raises(MachineError, match="would replace the unit of machine-agent") as raised:
        put(target)
    assert "machine-server -uninstall" in raised.value.remedy
    assert not target.layout.root.exists()
    unit.unlink()
    put(target)


def test_a_unit_that_does_not_start_is_an_error_with_the_reason(target: InstallTarget) -> None:
    (target.root.parent / "fails").touch()
    with pytest.raises(MachineError, match=r"Job for machine-agent\.service failed"):
        put(target)


def test_the_removal_stops_both_programs_and_leaves_nothing(target: InstallTarget) -> None:
    def names() -> set[str]:
        return {str(path.relative_to(target.root)) for path in target.root.rglob("*")}

    before = names()
    put(target)
    (target.root.parent / "active/machine-server.service").touch()
    pause = target.inside(RESTART_PAUSE)  # machine-server has crashed
    pause.parent.mkdir(parents=True)
    pause.touch()
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert active(target) == set()
    assert names() - before == set()


def test_the_removal_undoes_the_system_configuration(target: InstallTarget) -> None:
    put(target)
    manifest = str((Layout().state / MANIFEST).relative_to("/"))
    apply_files(ManagedDisk(target.root), manifest, [WantedFile(journald.PATH, "# Written by machine-agent.\n")])
    record = SystemRecord(journald="a" * 64, timers={"apt-daily-upgrade.timer": True})
    (target.layout.state / RECORD).write_bytes(msgspec.json.encode(record))
    before = len(calls(target))
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    again = calls(target)[before:]
    assert "restart systemd-journald.service" in again
    assert "enable --now apt-daily-upgrade.timer" in again
    assert not (target.root / journald.PATH).exists()


def test_an_interpreter_that_a_user_can_replace_is_named(tmp_path: Path) -> None:
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    if os.geteuid() == 0:
        os.chown(tmp_path / "venv", 1000, 1000)
        assert f"{tmp_path}/venv belongs to user 1000" in interpreter_warnings(python)[1]
    assert str(sys.executable) in interpreter_warnings(Path(sys.executable))[0]
