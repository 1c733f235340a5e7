"""Installation into the tree of an image, repeated and interrupted, and the removal."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent.folders import locked
from agent.install import install as module
from agent.install.install import InstallRequest, install, only, uninstall
from agent.install.source import stage_package
from agent.install.target import InstallTarget
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import WantedFile
from agent.system.state import MANIFEST
from agent.update import store
from agent.update.record import Release, ReleaseSlots, UpdateOutcome, UpdateRecord, UpdateResult
from schema.errors import MachineError
from tests.unit.agent.releases.repository import Repository

UNITS = {program: f"# Written by machine-agent.\n[Service]\nExecStart={program}\n" for program in PROGRAMS}
CONFIG, DEFAULTS = Path("/etc/machine.json"), Path("/etc/machine-defaults.json")


@pytest.fixture
def target(tmp_path: Path) -> InstallTarget:
    """The tree of an image with systemd, and with files of its own."""
    (tmp_path / "usr/lib/systemd").mkdir(parents=True)
    (tmp_path / "usr/lib/systemd/systemd").write_text("")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/system/other.service").write_text("[Service]\n")
    (tmp_path / "opt").mkdir()
    (tmp_path / "run").mkdir()
    return InstallTarget(tmp_path, live=False)


def put(target: InstallTarget, units: dict[str, str] | None = None, **request: Any) -> list[str]:
    """Install, and return what was said."""
    said: list[str] = []
    install(target, InstallRequest(stage_package, units or UNITS, **request), said.append)
    return said


def tree(root: Path) -> dict[str, str]:
    """Return all entries below a folder, with the content of files and the targets of links."""
    entries = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        entries[name] = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else path.read_text()
    return entries


def test_everything_is_in_its_place(target: InstallTarget) -> None:
    said = put(target)
    layout = target.layout
    for program in PROGRAMS:
        assert (target.root / f"etc/systemd/system/{program}.service").read_text() == UNITS[program]
        record = store.load(layout.record(program)).record
        assert record is not None
        assert record.slots.factory == record.slots.current
        assert (layout.launch(program) / "run" / "run").is_file()
        assert (layout.releases(program) / "factory" / "run").is_file()
    wants = target.root / "etc/systemd/system/multi-user.target.wants"
    assert {path.name: os.readlink(path) for path in wants.iterdir()} == {
        f"{program}.service": f"/etc/systemd/system/{program}.service" for program in PROGRAMS
    }
    assert stat.S_IMODE(layout.launcher.stat().st_mode) == 0o755
    assert any("machine-agent waits for it" in line for line in said)


def test_the_links_are_valid_in_the_running_system_too(target: InstallTarget) -> None:
    put(target)
    for path in target.root.rglob("*"):
        if path.is_symlink() and "wants" not in str(path):
            assert not os.readlink(path).startswith("/"), path


def test_the_launcher_starts_the_installed_release(target: InstallTarget) -> None:
    put(target)
    done = subprocess.run(
        [str(target.layout.launcher), AGENT, "--version"],
        env={**os.environ, "MACHINE_ROOT": str(target.layout.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("machine-agent ")


def test_nothing_is_left_after_the_removal(target: InstallTarget) -> None:
    before = tree(target.root)
    put(target)
    target.inside(CONFIG).write_text("{}")
    target.inside(DEFAULTS).write_text("{}")
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert tree(target.root) == before


def test_the_drop_ins_of_the_system_configuration_are_removed_too(target: InstallTarget) -> None:
    before = tree(target.root)
    put(target)
    files = [
        WantedFile("etc/systemd/journald.conf.d/90-machine-agent.conf", "# Written by machine-agent.\n[Journal]\n"),
        WantedFile("etc/apt/apt.conf.d/51machine-agent", "# Written by machine-agent.\n"),
    ]
    manifest = str((Layout().state / MANIFEST).relative_to("/"))
    assert not apply_files(ManagedDisk(target.root), manifest, files).problems
    said: list[str] = []
    uninstall(target, said.append, config=CONFIG, defaults=DEFAULTS)
    assert tree(target.root) == before
    assert "/etc/apt/apt.conf.d/51machine-agent: removed" in said


def test_a_removal_that_is_repeated_has_nothing_to_do(target: InstallTarget) -> None:
    target.inside(CONFIG).write_text("{}")
    before = tree(target.root)
    said: list[str] = []
    uninstall(target, said.append, config=CONFIG, defaults=DEFAULTS)
    assert tree(target.root) == before
    assert said == [f"nothing is installed: {target.layout.root} does not exist"]


def test_a_mount_point_stays_and_loses_its_content(target: InstallTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    put(target)
    monkeypatch.setattr(Path, "is_mount", lambda path: path == target.layout.root)
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert list(target.layout.root.iterdir()) == []


def test_credentials_can_be_kept(target: InstallTarget) -> None:
    put(target)
    target.inside(CONFIG).write_text("{}")
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS, keep_credentials=True)
    assert target.inside(CONFIG).exists()


def test_a_file_that_a_person_has_changed_is_left_and_named(target: InstallTarget) -> None:
    put(target)
    unit = target.root / "etc/systemd/system/machine-server.service"
    unit.write_text(unit.read_text() + "MemoryMax=1G\n")
    with pytest.raises(MachineError, match=r"are left: /etc/systemd/system/machine-server\.service"):
        uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert unit.exists()
    assert not target.layout.root.exists()


def test_a_unit_file_from_another_source_is_not_overwritten(target: InstallTarget) -> None:
    unit = target.root / "etc/systemd/system/machine-agent.service"
    unit.write_text("[Service]\nExecStart=/usr/bin/other\n")
    with pytest.raises(MachineError, match="it was not overwritten"):
        put(target)
    assert unit.read_text() == "[Service]\nExecStart=/usr/bin/other\n"


def test_a_repeated_installation_replaces_the_units_and_changes_nothing_else(target: InstallTarget) -> None:
    put(target)
    before = tree(target.root)
    put(target)
    assert tree(target.root) == before
    put(target, {program: f"{text}Nice=1\n" for program, text in UNITS.items()})
    changed = {name for name, content in tree(target.root).items() if before.get(name) != content}
    assert {Path(name).name for name in changed} == {
        "machine-agent.service",
        "machine-server.service",
        module.INSTALLED,
    }


def test_installing_over_another_release_keeps_it_as_the_previous_one(target: InstallTarget) -> None:
    put(target)
    layout = target.layout
    loaded = store.load(layout.record(SERVER)).record
    assert loaded is not None
    old = Release("0.9.0", "9" * 64, 1, "file:///old", "linux/x86_64")
    folder = layout.release(SERVER, old.sha256)
    folder.mkdir()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    history = (UpdateOutcome("0.8.0", "0.9.0", old.sha256, UpdateResult.UPDATED, "", 1.0, 2.0),)
    store.save(layout.record(SERVER), UpdateRecord(SERVER, ReleaseSlots(old), history=history))
    put(target)
    record = store.load(layout.record(SERVER)).record
    assert record is not None
    assert (record.slots.current, record.slots.previous) == (loaded.slots.current, old)
    assert record.history == history
    assert os.readlink(layout.launch(SERVER) / "back").endswith(old.sha256)


def test_a_damaged_record_is_replaced(target: InstallTarget) -> None:
    put(target)
    for path in target.layout.state.glob("machine-server.json*"):
        path.write_bytes(b"x")
    put(target)
    assert store.load(target.layout.record(SERVER)).record is not None


def test_credentials_are_closed_to_other_users(target: InstallTarget) -> None:
    config = target.inside(CONFIG)
    config.write_text(json.dumps({"cloud": {}}))
    config.chmod(0o644)
    assert "/etc/machine.json: other users can no longer read it" in put(target)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


class PowerCut(Exception):
    """The power fails."""


@contextmanager
def power_for(allowed: int) -> Iterator[None]:
    """Let this many operations on the disk happen, then cut the power."""
    count = [0]

    def limited(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if count[0] >= allowed:
                raise PowerCut
            count[0] += 1
            return function(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch, suppress(PowerCut):
        for name in ("mkdir", "open", "replace", "rename", "symlink", "unlink"):
            patch.setattr(os, name, limited(getattr(os, name)))
        yield


def test_an_interrupted_installation_is_completed_by_the_next_one(tmp_path: Path) -> None:
    """Every prefix of the operations leaves a state from which the installation and the removal succeed."""
    complete: dict[str, str] | None = None
    interrupted = 0
    for allowed in (*range(0, 60, 3), *range(60, 400, 20)):
        root = tmp_path / str(allowed)
        (root / "usr/lib/systemd").mkdir(parents=True)
        (root / "usr/lib/systemd/systemd").write_text("")
        target = InstallTarget(root, live=False)
        finished = False
        with power_for(allowed):
            put(target)
            finished = True
        interrupted += not finished
        put(target)
        entries = tree(root)
        complete = complete or entries
        assert entries.keys() == complete.keys(), allowed
    assert interrupted > 15


def test_a_system_without_systemd_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="systemd is not the init process") as raised:
        put(InstallTarget(tmp_path, live=False))
    assert "--dev-mode" in raised.value.remedy


def test_a_folder_that_is_not_an_installation_is_never_removed(target: InstallTarget) -> None:
    target.layout.root.mkdir()
    (target.layout.root / "data").write_text("precious")
    with pytest.raises(MachineError, match="is not the folder of an installed machine-agent"):
        uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert (target.layout.root / "data").exists()


def test_credentials_are_copied_and_never_readable_by_others(target: InstallTarget, tmp_path: Path) -> None:
    source = tmp_path / "download.json"
    (tmp_path / "ca.pem").write_text("certificates")
    cloud = {"id": "p1", "secret": "s", "app_address": "https://cloud.example", "ca_file": "ca.pem"}
    source.write_text(json.dumps({"cloud": cloud}))
    source.chmod(0o644)
    old = os.umask(0)
    try:
        said = put(target, credentials=source)
    finally:
        os.umask(old)
    config = target.inside(CONFIG)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert json.loads(config.read_text())["cloud"] == {**cloud, "ca_file": "machine-cloud-ca.pem"}
    assert (config.parent / "machine-cloud-ca.pem").read_text() == "certificates"
    assert "/etc/machine.json: written, for part p1" in said


def test_credentials_that_cannot_be_used_are_refused_and_change_nothing(target: InstallTarget, tmp_path: Path) -> None:
    source = tmp_path / "download.json"
    source.write_text(json.dumps({"cloud": {"id": "p1", "app_address": "https://cloud.example"}}))
    target.inside(CONFIG).write_text("former")
    with pytest.raises(MachineError, match=r"download\.json does not have the credentials of a machine"):
        put(target, credentials=source)
    assert target.inside(CONFIG).read_text() == "former"


def test_a_disk_without_space_is_refused_before_anything_is_written(target: InstallTarget) -> None:
    before = tree(target.root)
    with pytest.raises(MachineError, match=r"MiB free, and the installation needs \d+ MiB"):
        put(target, space=1 << 60)
    assert tree(target.root) == before


def test_two_installations_at_the_same_time_are_refused(target: InstallTarget) -> None:
    put(target)
    target.layout.run.mkdir(parents=True)
    with only(target.layout):
        with pytest.raises(MachineError, match="another installation or removal is running"):
            put(target)
        with pytest.raises(MachineError, match="another installation or removal is running"):
            uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)


def test_an_agent_that_systemd_did_not_start_keeps_the_installation_from_its_records(target: InstallTarget) -> None:
    put(target)
    target.layout.run.mkdir(parents=True)
    with locked(target.layout.lock), pytest.raises(MachineError, match="another machine-agent runs already"):
        put(target)


def former(target: InstallTarget) -> None:
    """Put the reference's agent into the image, enabled, with its credentials."""
    units = target.inside("/etc/systemd/system")
    (units / "viam-agent.service").write_text("[Service]\n")
    (units / "multi-user.target.wants").mkdir()
    (units / "multi-user.target.wants/viam-agent.service").symlink_to("../viam-agent.service")
    target.inside("/etc/viam.json").write_text('{"cloud": {"id": "old"}}')


def test_the_service_of_the_reference_does_not_run_at_the_same_time(target: InstallTarget) -> None:
    former(target)
    before = tree(target.root)
    with pytest.raises(MachineError, match=r"viam-agent\.service would run this machine a second time") as raised:
        put(target)
    assert "--migrate" in raised.value.remedy
    assert tree(target.root) == before


def test_a_migration_disables_the_former_service_and_takes_over_its_credentials(target: InstallTarget) -> None:
    former(target)
    said = put(target, migrate=True)
    units = target.inside("/etc/systemd/system")
    assert not (units / "multi-user.target.wants/viam-agent.service").is_symlink()
    assert (units / "viam-agent.service").exists()
    assert target.inside("/etc/viam.json").exists()
    assert target.inside(CONFIG).read_text() == '{"cloud": {"id": "old"}}'
    assert stat.S_IMODE(target.inside(CONFIG).stat().st_mode) == 0o600
    assert any(line.startswith("viam-agent.service: disabled") for line in said)
    target.inside(CONFIG).write_text("newer")
    put(target, migrate=True)
    assert target.inside(CONFIG).read_text() == "newer"


def test_a_pinned_root_is_checked_before_anything_is_changed(target: InstallTarget) -> None:
    root = Repository().files["1.root.json"]
    before = tree(target.root)
    with pytest.raises(MachineError, match=r"the root\.json to pin is not valid"):
        put(target, release_root=b"{}")
    assert tree(target.root) == before
    assert any("only signed releases" in line for line in put(target, release_root=root))
    pinned = target.layout.trust / "pinned.json"
    assert pinned.read_bytes() == root
    put(target)
    assert pinned.read_bytes() == root


def test_a_command_of_another_source_is_not_overwritten_and_the_remedy_fits(target: InstallTarget) -> None:
    command = target.inside(Path("/usr/local/bin/machine-agent"))
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    with pytest.raises(MachineError, match=r"did not write it.*move it away, then run the installation again"):
        put(target)
    assert command.read_text() == "#!/bin/sh\n"
    command.unlink()
    put(target)
