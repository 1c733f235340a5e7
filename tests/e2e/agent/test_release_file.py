"""A release file of this computer's processor, if `make release` has built one: building takes two minutes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent.releases.header import read_identity
from agent.releases.unpack import unpack
from support.program_version import version
from tests.e2e.harness import Server
from uplink.platforms import platform
from uplink.releases import AGENT, PROGRAMS, SERVER

FOLDER = Path(__file__).parents[3] / "build/release"
DOCUMENT = {"components": [{"name": "a", "api": "rdk:component:sensor", "model": "rdk:builtin:fake"}]}


def release(program: str) -> Path:
    """Return the built file, or skip the test."""
    path = FOLDER / f"{program}-v{version()}-{os.uname().machine}"
    if not path.exists():
        pytest.skip(f"{path} was not built: `make release`")
    return path


class Packaged(Server):
    """machine-server from a release, without the Python of this computer and with a hostile environment."""

    program: Path

    def words(self, *options: str, program: str = "") -> list[str]:
        return [str(self.program), "-config", str(self.config), *options]

    @property
    def environ(self) -> dict[str, str]:
        modules = self.folder / "hostile"
        modules.mkdir(exist_ok=True)
        (modules / "trio.py").write_text("raise SystemExit('a module of the environment was imported')\n")
        return {
            **super().environ,
            "PYTHONPATH": str(modules),
            "PYTHONHOME": str(modules),
            "PATH": "/usr/bin:/bin",
            "MACHINE_RELEASE_CACHE": str(self.folder / "cache"),
        }


@pytest.mark.limit(60)
def test_a_release_file_serves_when_it_is_executed(tmp_path: Path) -> None:
    server = Packaged(DOCUMENT, tmp_path)
    server.program = release(SERVER)
    with server:
        server.wait_running()
        assert '"ready":1,"configured":1' in server.log()


@pytest.mark.limit(60)
def test_an_unpacked_release_serves_through_a_link(tmp_path: Path) -> None:
    unpack(release(SERVER), tmp_path / "slot")
    (tmp_path / "current").symlink_to("slot")
    server = Packaged(DOCUMENT, tmp_path)
    server.program = tmp_path / "current/run"
    with server:
        server.wait_running()
        assert server.process is not None
        running = Path(f"/proc/{server.process.pid}/cmdline").read_text().split("\0")
        assert running[0] == str(tmp_path / "slot/bin/python3.11")
        listed = subprocess.run(
            [tmp_path / "current/machine", "resources", "--address", server.address],
            env=dict(os.environ, **server.environ),
            capture_output=True,
            text=True,
        )
        assert "rdk:component:sensor" in listed.stdout, listed.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_release_file_is_what_its_header_says(program: str, tmp_path: Path) -> None:
    path = release(program)
    header = read_identity(path)
    assert (header.program, header.version, header.platform) == (program, version(), platform())
    environment = {"PATH": "/usr/bin:/bin", "MACHINE_RELEASE_CACHE": str(tmp_path)}
    done = subprocess.run([path, "--version"], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{program} {version()}\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="installing needs root")
@pytest.mark.limit(120)
def test_a_release_installs_itself_and_the_server_without_the_python_of_this_computer(tmp_path: Path) -> None:
    """The interpreter of a release is older than that of the tests: it must unpack releases, too."""
    root = tmp_path / "image"
    for name in ("usr/lib/systemd", "etc", "opt"):
        (root / name).mkdir(parents=True)
    (root / "usr/lib/systemd/systemd").touch()
    environment = {"PATH": "/usr/bin:/bin", "MACHINE_RELEASE_CACHE": str(tmp_path / "cache")}
    command = [release(AGENT), "--preinstall", str(root), "--server", str(release(SERVER))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    environment = {"PATH": "/usr/bin:/bin", "MACHINE_ROOT": str(root / "opt/machine")}
    for program in PROGRAMS:
        launched = [root / "opt/machine/bin/machine-launch", program, "--version"]
        done = subprocess.run(launched, env=environment, capture_output=True, text=True)
        assert done.stdout == f"{program} {version()}\n", done.stderr
    assert (
        (root / "usr/local/bin/machine").read_text().endswith('/opt/machine/launch/machine-agent/run/machine" "$@"\n')
    )
