"""An installation and its removal leave every entry of a system as it was: path, type, mode, owner and content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.install.install import InstallRequest, install, uninstall
from agent.install.release_files import ReleaseSource, read_release
from agent.install.source import stage_package
from agent.install.target import InstallTarget
from agent.layout import PROGRAMS, Layout
from agent.supervise.units import agent_unit, server_unit
from tests.helpers.release_files import write_release
from tests.unit.agent.install.test_live import SYSTEMCTL
from uplink.platforms import platform
from uplink.releases import normal_platform

CONFIG, DEFAULTS = Path("/etc/machine.json"), Path("/etc/machine-defaults.json")
CREDENTIALS = '{"cloud": {"id": "p", "secret": "s", "app_address": "https://cloud.example"}}'
UNITS = {
    "machine-agent": agent_unit(Layout(), CONFIG, DEFAULTS),
    "machine-server": server_unit(Layout(), CONFIG),
}


def entries(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, type with mode, owner, and hash or target of everything below a folder."""
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = os.readlink(path)
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        owner = f"{status.st_uid}:{status.st_gid}"
        yield str(path.relative_to(root)), stat.filemode(status.st_mode), owner, content


def system(root: Path, *, live: bool) -> None:
    """Create a small Debian, with units and commands of its own, also in folders that the installation uses."""
    files = {
        "usr/lib/systemd/systemd": 0o755,
        "etc/systemd/system/other.service": 0o644,
        "etc/systemd/journald.conf": 0o600,
        "etc/hostname": 0o640,
        "usr/local/bin/backup": 0o750,
    }
    for name, mode in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
        (root / name).chmod(mode)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir()
    (wants / "other.service").symlink_to("/etc/systemd/system/other.service")
    for name in ("opt", "run", "var/cache"):
        (root / name).mkdir(parents=True)
    (root / "opt").chmod(0o751)
    if live:
        (root / "run/systemd/system").mkdir(parents=True)


def package(target: InstallTarget, folder: Path) -> InstallRequest:
    return InstallRequest(stage_package, UNITS)


def release(target: InstallTarget, folder: Path) -> InstallRequest:
    here = normal_platform(platform())
    named = {name: write_release(folder / name, "1.0.0", "exit\n", program=name) for name in PROGRAMS}
    read = {name: read_release(name, path, here) for name, path in named.items()}
    source = ReleaseSource(read, here, target.inside(CONFIG))
    return InstallRequest(source.stage, UNITS, fetch=source.fetch, space=source.space)


@pytest.mark.parametrize("live", [False, True], ids=["image", "running system"])
@pytest.mark.parametrize("kind", [package, release])
def test_nothing_is_left(
    kind: Callable[[InstallTarget, Path], InstallRequest], live: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, root = tmp_path / "bin", tmp_path / "root"
    for folder in (programs, tmp_path / "active"):
        folder.mkdir()
    (tmp_path / "systemd-path").write_text("/etc/systemd/system:/usr/local/lib/systemd/system")
    for name, text in (("systemctl", SYSTEMCTL), ("systemd-path", '#!/bin/sh\ncat "$FAKE/systemd-path"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    system(root, live=live)
    target, before = InstallTarget(root, live=live), list(entries(root))
    request = kind(target, tmp_path)
    install(target, request, lambda line: None)
    installed = {path for path, *_ in entries(root)}
    assert len(installed) > len(before) + 20
    target.inside(CONFIG).write_text(CREDENTIALS)
    target.inside(DEFAULTS).write_text("{}")
    install(target, request, lambda line: None)  # a second time, over the first one
    uninstall(target, lambda line: None, config=CONFIG, defaults=DEFAULTS)
    assert list(entries(root)) == before
