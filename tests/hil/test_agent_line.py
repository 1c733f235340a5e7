"""The line of a new machine, of its page and of `machine cloud install-line`, executed on a fresh Debian.

Each test ends when the machine is online in the cloud.

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
from tests.e2e.browser.chromium import browser
from tests.e2e.browser.hand import Hand, run
from tests.e2e.browser.signing import sign_in
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
IMPORTED: Final = "document.querySelector('.import .is-ready')"
BUILD_LIMIT: Final = 900.0  # seconds
NEW: Final = "form[action='/machines']"
LINE: Final = "document.querySelector('section[aria-labelledby=line-title] pre').textContent"
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


@pytest.mark.parametrize("kind", ["of the source", pytest.param("built", marks=_BUILT)])
async def test_a_second_machine_joins_by_the_line_of_its_page(guest: Guest, tmp_path: Path, kind: str) -> None:
    """From the list of a cloud without releases to the running machine, with clicks, seconds and typed bytes.

    `built` builds the releases when the button is clicked, unless `make release` has built them before.
    """
    releases = tmp_path / "releases"
    if kind == "of the source":
        for name in PROGRAMS:
            for platform_name in ("linux/x86_64", "linux/aarch64"):
                write(releases, name, version(), on=platform_name)
    await complete(guest, tmp_path / "copies")
    options = ("--releases", str(releases))
    async with joined(guest, tmp_path, options=options) as device, browser(tmp_path / "browser") as page:
        await sign_in(page, device.cloud)
        hand = _Person(page)
        hand.device = device
        await run(hand, f"http://{device.cloud.address}/", _second_machine, f"document.querySelector({NEW!r})")
        await guest.run("machine-agent --uninstall")


class _Person(Hand):
    device: Device


async def _second_machine(hand: _Person) -> None:
    """Let a second machine join, from a cloud without releases to the running machine."""
    page, guest = hand.page, hand.device.guest
    await hand.click("a[href='/releases']")
    await page.until("document.querySelector('.import button')")
    await hand.click(".import button")
    await until(partial(page.evaluate, f"!!{IMPORTED}"), limit=BUILD_LIMIT)
    await hand.click("nav a[href='/']")
    await page.until(f"document.querySelector({NEW!r})")
    if await page.evaluate("!!document.querySelector('details.new:not([open])')"):
        await hand.click("details.new summary")
    await hand.fill(f"{NEW} [name=name]", "press")
    await hand.click(f"{NEW} button")
    await page.until(f"!!{LINE}")
    await hand.click("[data-copy]")
    line = str(await page.evaluate(LINE))
    assert f"http://{hand.device.address}/install.sh" in line
    hand.clicks += 2  # into the terminal of the computer, and to paste
    done = await guest.run(line)
    assert "machine-agent is installed" in done.stdout, done.output
    await page.until("document.querySelector('main').innerText.includes('The machine is connected.')", limit=120)
