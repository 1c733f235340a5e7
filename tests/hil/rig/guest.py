"""The guest as tests use it: programs, files, monitor, power."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from tests.hil.rig.server import Server
from tests.hil.image.contents import USER
from tests.hil.rig.channel import Channel, GuestProcess, connect_channel
from tests.hil.rig.disk import Disk
from tests.hil.rig.programs import program_of
from tests.hil.rig.qemu_machine import QemuHost
from tests.hil.rig.qmp import Qmp
from tests.hil.rig.uml_machine import Exposed, UmlHost, UmlMachine
from tests.hil.rig.usb import Usb
from tests.hil.rig.vm import VirtualMachine

RUN_LIMIT: Final = 180.0  # seconds for a program that a test runs to its end, by default
RESUME_LIMIT: Final = 90.0  # seconds; about 2 on a quiet computer
BOOT_LIMIT: Final = 180.0


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a program that has ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class Guest:
    """A running guest. `host` is its surroundings; `usb` plugs in devices from outside."""

    def __init__(self, vm: VirtualMachine, nursery: trio.Nursery) -> None:
        self.vm = vm
        self.nursery = nursery  # of the test: everything started in the guest ends with it
        self.host: QemuHost | UmlHost
        self.channel: Channel
        self.disks: list[Disk] = []

    @property
    def usb(self) -> Usb[Any]:
        return self.host.usb

    @property
    def qmp(self) -> Qmp:
        """Return QEMU's monitor; only in tests marked `qemu`."""
        assert isinstance(self.host, QemuHost), "this guest is not in QEMU: mark the test with pytest.mark.qemu(reason)"
        return self.host.qmp

    async def connect(self) -> None:
        """Connect to the guest, running or still starting."""
        self.host = UmlHost(self, self.vm) if isinstance(self.vm, UmlMachine) else await QemuHost.open(self)
        self.channel = await connect_channel(self.vm, self.nursery, time=time.time())
        await self.run(self.vm.setup())

    async def run(
        self,
        command: str | Sequence[str],
        *,
        check: bool = True,
        input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        limit: float = RUN_LIMIT,
        **how: Any,
    ) -> Completed:
        """Run a program or a shell command line to its end. With `check`, AssertionError if it fails."""
        with trio.fail_after(limit):
            process = await self.start(command, **how)
            if input is not None:
                await process.write(input)
            await process.close_input()
            status = await process.wait()
        done = Completed(status, process.stdout, process.stderr)
        assert not check or status == 0, f"{process.what}: ended with {status}\n{done.output}"
        return done

    async def start(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        keep: bool = False,
        fresh: bool = False,
        descriptors: Sequence[int] = (0, 1, 2),
    ) -> GuestProcess:
        """Start a program or a shell command line; it ends with the test unless `keep` is set.

        `machine-server`, `machine` and `python3 -m` are forked by an interpreter that has imported their modules,
        unless `fresh` is set. For these, `descriptors` lists which of 0 (input), 1 (output) and 2 (errors) become the
        program's descriptors 0, 1, 2, ...
        """
        how: dict[str, Any] = {"user": user, "cwd": cwd, "keep": keep}
        how["env"] = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", **(env or {})}
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else list(command)
        program = None if fresh else program_of(command)
        if program is not None:
            how |= {"module": program.module, "arguments": program.arguments, "imports": program.imports}
            how["descriptors"] = descriptors
        return await self.channel.start(argv, **how)

    def user(self, name: str = USER[0]) -> As:
        """Return this guest for an unprivileged account: `await guest.user().run("id")`."""
        return As(self, name)

    async def read(self, path: str | Path) -> bytes:
        """Return the content of a file in the guest; OSError if it cannot be read."""
        return base64.b64decode((await self.channel.ask("read", path=str(path)))["data"])

    async def write(self, path: str | Path, data: str | bytes, mode: int | None = None) -> None:
        """Write a file in the guest."""
        raw = data.encode() if isinstance(data, str) else data
        extra: dict[str, Any] = {} if mode is None else {"mode": mode}
        await self.channel.ask("write", path=str(path), data=base64.b64encode(raw).decode(), **extra)

    async def disk(self, path: str, size: int) -> Disk:
        """Create and mount a disk of `size` bytes at `path`, which can be filled and made to fail."""
        disk = Disk(self, path, size)
        self.disks.append(disk)
        await disk.make()
        return disk

    async def monotonic(self) -> float:
        """Return the guest's CLOCK_MONOTONIC, the clock of the plant's events."""
        return float((await self.run("cut -d' ' -f1 /proc/uptime")).stdout)

    async def forward(self, port: int) -> int:
        """Forward a free loopback port of this computer to `port` in the guest, and return its number."""
        return await self.host.forward(port)

    async def unforward(self, port: int) -> None:
        """Close a port opened by `forward`."""
        await self.host.unforward(port)

    def expose(self) -> Exposed:
        """Let programs in the guest connect to a loopback port of this computer: set `port`, use `address` there.

        Until the test ends, also after a power cut. Only in User-Mode Linux.
        """
        assert isinstance(self.host, UmlHost), "this guest is not in User-Mode Linux"
        return self.host.expose()

    @asynccontextmanager
    async def server(self, document: Mapping[str, Any] | None, *options: str, **how: Any) -> AsyncIterator[Server]:
        """Run machine-server in the guest: see tests.hil.rig.server.open_server."""
        from tests.hil.rig.server import open_server

        async with open_server(self, document, *options, **how) as server:
            yield server

    async def power_cut(self) -> None:
        """End the machine without notice: data that had not reached the disk is lost. Call `boot` next."""
        await trio.to_thread.run_sync(self.vm.kill)
        while not self.channel.closed:
            await trio.lowlevel.checkpoint()

    async def boot(self) -> None:
        """Boot from the disk after a power cut."""
        self.vm.start(resume=False)
        with trio.fail_after(BOOT_LIMIT):
            await self.connect()


@dataclass(frozen=True, slots=True)
class As:
    """A guest used through one of its accounts."""

    guest: Guest
    name: str

    @property
    def run(self) -> Callable[..., Any]:
        return self._with(self.guest.run)

    @property
    def start(self) -> Callable[..., Any]:
        return self._with(self.guest.start)

    def _with(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, user=self.name)


@asynccontextmanager
async def open_guest(vm: VirtualMachine) -> AsyncIterator[Guest]:
    """Connect to a started machine. Programs started without `keep` end when the next session begins.

    A machine that did not answer last time is replaced first, so that one hang does not fail the next test.
    """
    if vm.hung:
        await vm.renew()
    async with trio.open_nursery() as nursery:
        guest = Guest(vm, nursery)
        try:
            with trio.fail_after(RESUME_LIMIT):
                await guest.connect()
        except trio.TooSlowError:
            vm.hung = True
            raise AssertionError(f"the guest did not answer within {RESUME_LIMIT:.0f} s:\n{vm.log()}") from None
        yield guest
        nursery.cancel_scope.cancel()
