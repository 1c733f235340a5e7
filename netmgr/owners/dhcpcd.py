"""dhcpcd, as on Raspberry Pi OS before bookworm, with the wpa_supplicant that its hook starts."""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Final

import trio

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork
from netmgr.owners.adopt import from_wpa_supplicant
from netmgr.owners.files import read
from netmgr.programs import run
from schema import ErrorKind, MachineError
from support import RunBlocking

PIDS: Final = ("run/dhcpcd/pid", "run/dhcpcd.pid")
"""Files with the id of the process, of version 9 and of older ones."""
CONTROLS: Final = ("run/dhcpcd/sock", "run/dhcpcd.sock")
"""Control sockets, of version 9 and of older ones."""
CONTROL_LIMIT: Final = 10.0
WPA: Final = ("etc/wpa_supplicant/wpa_supplicant-{}.conf", "etc/wpa_supplicant/wpa_supplicant.conf")


class Dhcpcd:
    """dhcpcd as an owner of interfaces. `root` is the root of the file system."""

    name: Manager = "dhcpcd"

    def __init__(self, run_blocking: RunBlocking, root: Path = Path("/")) -> None:
        self._run_blocking, self._root = run_blocking, root

    async def manages(self, interface: str) -> bool:
        """Return whether it configures this interface now, or would if a cable or network were there."""
        return bool(await self._run_blocking(partial(_manages, self._root, interface)))

    async def networks(self, interface: str) -> tuple[UsableNetwork, ...]:
        """Return the networks that it would use on this interface by itself, with their credentials.

        Static addresses of dhcpcd.conf are left out: they belong to interfaces, not to networks.
        """
        for name in WPA:
            text = await self._run_blocking(partial(read, self._root / name.format(interface)))
            if text:
                return from_wpa_supplicant(text, interface)
        return ()

    async def take(self, interface: str) -> None:
        """Make it leave the interface alone, until `give_back` or the next start of the computer."""
        await _stop(await self._run_blocking(partial(_control, self._root)), interface)
        if await self._run_blocking((self._root / f"run/wpa_supplicant/{interface}").exists):
            try:
                await run(["wpa_cli", "-p", "/run/wpa_supplicant", "-i", interface, "terminate"])
            except MachineError:
                pass  # it has ended meanwhile, or belongs to another program, which then is the owner

    async def give_back(self, interface: str) -> None:
        """Let it configure the interface again. The hook of dhcpcd starts wpa_supplicant again.

        A dhcpcd that manages all interfaces has forgotten this one and no command makes it look again, so its service
        is restarted; with the usual option `persistent` the other interfaces keep their addresses meanwhile.
        """
        service = await self._run_blocking(partial(_service, self._root))
        await run(["systemctl", "restart", service] if service else ["dhcpcd", "--rebind", interface])


async def _stop(control: Path | None, interface: str) -> None:
    """Let dhcpcd give an interface up.

    Its command `--exit INTERFACE` signals a process of this interface, which one that manages all interfaces does not
    have. That one accepts the same words at its control socket.
    """
    if control is None:
        await run(["dhcpcd", "--exit", interface])
        return
    try:
        with trio.fail_after(CONTROL_LIMIT):
            async with await trio.open_unix_socket(str(control)) as stream:
                await stream.send_all("".join(f"{word}\0" for word in ("dhcpcd", "-x", interface)).encode())
                await stream.send_eof()
                while await stream.receive_some():
                    pass
    except (OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
        raise MachineError(
            f"dhcpcd does not give {interface} up through {control}: {error}", kind=ErrorKind.UNAVAILABLE
        ) from None


def _control(root: Path) -> Path | None:
    """Return the control socket of a dhcpcd that manages all interfaces; None if there is none."""
    return next((root / name for name in CONTROLS if (root / name).is_socket()), None)


def _service(root: Path) -> str:
    """Return the unit of systemd of a dhcpcd that manages all interfaces; empty if there is none."""
    for name in PIDS:
        groups = read(root / "proc" / (read(root / name).strip() or "none") / "cgroup")
        if match := re.search(r"/([^/\n]+\.service)$", groups, re.MULTILINE):
            return match[1]
    return ""


def _manages(root: Path, interface: str) -> bool:
    """Return whether dhcpcd runs and its configuration includes the interface."""
    running = any(_alive(root / pid) for pid in PIDS)
    return running and shutil.which("dhcpcd") is not None and includes(read(root / "etc/dhcpcd.conf"), interface)


def _alive(pid: Path) -> bool:
    text = read(pid).strip()
    return text.isdecimal() and os.path.isdir(f"/proc/{text}")


def includes(configuration: str, interface: str) -> bool:
    """Return whether dhcpcd.conf includes an interface: by `allowinterfaces` and `denyinterfaces`. Pure."""
    rules: dict[str, list[str]] = {"allow": [], "deny": []}
    for line in configuration.splitlines():
        words = line.split("#")[0].split()
        if words and words[0] in ("allowinterfaces", "denyinterfaces"):
            rules[words[0].removesuffix("interfaces")] += words[1:]
    if any(_matches(pattern, interface) for pattern in rules["deny"]):
        return False
    return not rules["allow"] or any(_matches(pattern, interface) for pattern in rules["allow"])


def _matches(pattern: str, interface: str) -> bool:
    """Return whether a pattern of the shell, as dhcpcd.conf has them, matches an interface."""
    expression = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, interface) is not None
