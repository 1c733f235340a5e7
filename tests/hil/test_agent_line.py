"""The line of `machine cloud install-line`, executed on a fresh Debian, until the machine is online in the cloud.

The image of the guest has no curl, xz and sudo, and a small disk: it gets curl and xz of this computer, a script for
sudo, and /opt in memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from agent.layout import PROGRAMS
from support.program_version import version
from tests.e2e.cloud.test_command import Terminal
from tests.helpers.waiting import until
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.hil.test_agent import online
from uplink.platforms import platform

OPTION: Final = "MACHINE_HIL_BUILT"
"""Environment variable that also installs release files of `make release`."""
BUILT: Final = Path(__file__).parents[2] / "build" / "release"
COPIES: Final = "/usr/local/lib/copied"
"""Folder of the guest for programs of this computer, with their libraries and loader."""
ROOM: Final = (
    "mkdir -p /mnt/site; mount --bind /opt/site /mnt/site; mount -t tmpfs -o size=900m tmpfs /opt; mkdir /opt/site; "
    "mount --bind /mnt/site /opt/site"
)
SUDO: Final = '#!/bin/sh\nexec "$@"\n'

_BUILT: Final = pytest.mark.skipif(
    not os.environ.get(OPTION), reason=f"built releases take two minutes in a guest: set {OPTION}=yes to install them"
)
pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("xz")), reason="the installer needs: apt-get install curl xz-utils"
)


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


def copy_programs(folder: Path) -> dict[str, str]:
    """Copy programs of this computer with loaders and libraries; return a script for each that uses only these."""
    folder.mkdir()
    scripts = {}
    for name in ("curl", "xz"):
        path = str(shutil.which(name))
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True, timeout=30).stdout
        files = [Path(word) for word in listed.split() if word.startswith("/")]
        loader = next(file for file in files if file.name.startswith("ld-linux"))
        for file in (Path(path), *files):
            shutil.copy(file, folder / file.name)
        scripts[name] = f'#!/bin/sh\nexec {COPIES}/{loader.name} --library-path {COPIES} {COPIES}/{name} "$@"\n'
    return scripts


async def complete(guest: Guest, folder: Path) -> None:
    """Give the guest what a Debian has and its image lacks, and take away what only the image has."""
    scripts = await trio.to_thread.run_sync(copy_programs, folder)
    await guest.run("rm -f /usr/local/bin/machine /usr/local/bin/machine-server")
    for name, script in {**scripts, "sudo": SUDO}.items():
        await guest.write(f"/usr/local/bin/{name}", script, 0o755)
    await guest.run(f"mkdir -p {COPIES}; umount -q {COPIES}; mount -t hostfs none {COPIES} -o {folder},ro")
    await guest.run(f"mountpoint -q /opt || ({ROOM})")


def built(program: str) -> Path:
    """Return the release file of this version that `make release` has built."""
    path = BUILT / f"{program}-v{version()}-{platform().rpartition('/')[2]}"
    assert path.exists(), f"{path} was not built: `make release`"
    return path


@pytest.mark.parametrize("kind", ["of the source", pytest.param("built", marks=_BUILT)])
async def test_one_line_brings_a_fresh_debian_online(guest: Guest, tmp_path: Path, kind: str) -> None:
    files = [built(name) if kind == "built" else write(tmp_path, name, "1.0.0").path for name in PROGRAMS]
    await complete(guest, tmp_path / "copies")
    async with joined(guest, tmp_path) as device:
        terminal, keys = Terminal(device.cloud, tmp_path / "home"), ("--keys", str(tmp_path / "keys"))
        key_id, key = device.cloud.key
        await terminal("login", f"http://{device.cloud.address}", "--key-id", key_id, MACHINE_CLOUD_KEY=key)
        await terminal("releases", "init", *keys)
        await terminal("releases", "upload", *map(str, files), "--channel", "stable", *keys)
        line = (await terminal("install-line", "rover")).splitlines()[0].replace(device.cloud.address, device.address)
        await run_line(device, line)
        await guest.run("machine-agent --uninstall")


async def run_line(device: Device, line: str) -> None:
    """Execute the line, and print how long it takes until the machine is online and its server serves."""
    assert f"http://{device.address}/install.sh" in line
    assert not await online(device)
    began = time.monotonic()
    done = await device.guest.run(line)
    installed = time.monotonic() - began
    assert "machine-agent is installed" in done.stdout, done.output
    await until(partial(online, device))
    print(
        f"installed after {installed:.1f} s, online in the cloud {time.monotonic() - began:.1f} s after the line began"
    )
    status = await device.until(lambda status: status["server"].get("serving"))
    assert status["server"]["version"] == status["agent"]["version"]
