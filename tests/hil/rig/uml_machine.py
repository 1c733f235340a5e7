"""A guest in User-Mode Linux: a kernel that is a program of this computer, so the guest runs at native speed.

It has no saved state; it boots in two seconds, because systemd is left out unless a test requires it. All its processes
are in a process namespace of their own: when the first of them is killed, nothing is left.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from tests.hil.image.contents import DRIVERS, INIT, SOURCE
from tests.hil.image.places import BUILD, IMAGE
from tests.hil.rig.lines import Gone
from tests.hil.rig.qemu import GUEST_ADDRESS, HOST_ADDRESS, MEMORY_MIB
from tests.hil.rig.tap import DEVICE, Tap
from tests.hil.rig.usb import UmlUsb
from tests.hil.rig.vm import VirtualMachine
from tests.hil.uml.kernel import KERNEL

if TYPE_CHECKING:
    from tests.hil.rig.guest import Guest

PROCESSOR: Final = "MACHINE_HIL_PROCESSOR"
"""Environment variable: the number of the processor on which guests of this test run stay."""

MEMORY: Final = Path("/dev/shm")
BUFFER: Final = 1 << 20  # buffer size in bytes of the agent's connection
KERNEL_LINE: Final = (
    "root=/dev/ubda rw con=null con0=null,fd:1 ssl=null noreboot quiet loglevel=4 net.ifnames=0 panic=-1 "
    "systemd.show_status=0 log_buf_len=1M rig.port=/dev/ttyS0"
)
READY: Final = "/run/rig-ready"
TRIAL_LIMIT: Final = 60.0  # seconds; a trial takes one
PANIC: Final = "Kernel panic"
ENDED_WELL: Final = "Attempted to kill init! exitcode=0x00000000"  # kernel/exit.c


class UmlMachine(VirtualMachine):
    """A virtual machine in User-Mode Linux. With `systemd`, systemd is its first process.

    `source` is where the guest mounts the project's source. With another folder than the usual, Python in the guest
    does not find it by itself, and /opt/machine is free for an installation.
    """

    def __init__(self, share: Path, *, image: Path = IMAGE, systemd: bool = False, source: str = SOURCE) -> None:
        super().__init__(share, image=image, resume=False)
        self.systemd = systemd
        self.source = source
        self.disk = self.folder / "disk.cow"
        self.tap = Tap()
        self._agent: socket.socket | None = None

    def __exit__(self, *details: object) -> None:
        super().__exit__(None, None, None)
        self.tap.close()

    def prepare_disk(self) -> None:
        """Do nothing: the kernel itself creates the layer over the image."""
        self.disk.unlink(missing_ok=True)

    def start(self, *, resume: bool) -> None:
        """Boot with the disk's present content."""
        self._agent, its = socket.socketpair()
        for end in (self._agent, its):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        with its, self.tap.inside():
            self.launch(
                ["unshare", "--pid", "--fork", "--kill-child=KILL", *self._command_line(its.fileno())],
                pass_fds=[its.fileno()],
                env={**os.environ, "TMPDIR": str(memory_folder(self.folder))},
            )

    def _command_line(self, agent: int) -> list[str]:
        return [
            # Each system call switches between two processes: on two processors, that costs twice as much.
            *("taskset", "--cpu-list", str(processor()), str(self.image / KERNEL)),
            *(f"mem={MEMORY_MIB}M", f"uml_dir={self.folder}/", "umid=uml"),
            *(f"ubd0={self.disk},{self.image / 'root.ext4'}", f"ssl0=fd:{agent}"),
            *(f"vec0:transport=tap,ifname={DEVICE},depth=128,gro=1", *KERNEL_LINE.split()),
            *([] if self.systemd else [f"init={INIT}"]),
        ]

    def setup(self) -> str:
        """Return the command that sets up drivers, network and source, once after each boot."""
        lines = (
            f"modprobe -a {' '.join(DRIVERS)}",
            f"ip link set vec0 name eth0; ip address replace {GUEST_ADDRESS}/24 dev eth0; ip link set lo up",
            f"ip link set eth0 up; mkdir -p {self.source}",
            f"mountpoint -q {self.source} || mount -t hostfs none {self.source} -o {self.share},ro",
        )
        return f"[ -e {READY} ] || {{ set -e; {'; '.join(lines)}; touch {READY}; }}"

    async def open_agent(self) -> trio.abc.Stream:
        """Open the serial line of the agent; data sent to an earlier connection may still arrive."""
        assert self._agent is not None
        if self.process is None or self.process.poll() is not None:
            raise Gone(f"the guest has ended:\n{self.log()}")
        return trio.SocketStream(trio.socket.from_stdlib_socket(self._agent.dup()))

    def kill(self) -> None:
        """Kill the first process of the machine, with which all others end."""
        first = self._first_process()
        if first and self.process is not None:
            os.kill(first, signal.SIGKILL)
            self.process.wait()
        super().kill()
        if self._agent is not None:
            self._agent.close()

    def freeze(self) -> None:
        """Stop the guest's processor."""
        os.kill(self._first_process(), signal.SIGSTOP)

    def _first_process(self) -> int:
        """Return the kernel's process ID, the first of its namespace; 0 before it begins and after it ends."""
        if self.process is None or self.process.poll() is not None:
            return 0
        children = _children(self.process.pid)
        return children[0] if children else 0


def processor() -> int:
    """Return the processor on which guests of this process run."""
    usable = sorted(os.sched_getaffinity(0))
    chosen = os.environ.get(PROCESSOR, "")
    return int(chosen) if chosen else usable[os.getpid() % len(usable)]


def memory_folder(otherwise: Path) -> Path:
    """Return the folder for the guest's memory file: in RAM if there is room and programs may run from it."""
    try:
        room = os.statvfs(MEMORY)
    except OSError:
        return otherwise
    enough = room.f_bavail * room.f_frsize >= 2 * MEMORY_MIB << 20
    return MEMORY if enough and not room.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK) else otherwise


def failed_trial() -> str:
    """Start the kernel with a first process that ends at once; return why that failed, or nothing.

    The kernel depends on the processor: without the patch for extended state, none of its processes runs on a computer
    with AMX.
    """
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=BUILD))
    command = [
        *(str(IMAGE / KERNEL), "mem=64M", f"uml_dir={folder}/", "umid=trial", f"ubd0r={IMAGE / 'root.ext4'}"),
        *("root=/dev/ubda", "ro", "con=null", "con0=null,fd:1", "ssl=null", "quiet", "loglevel=4", "init=/bin/true"),
    ]
    # A process namespace, because a kernel that panics does not end.
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child=KILL", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(memory_folder(folder))},
    )
    limit = threading.Timer(TRIAL_LIMIT, process.kill)
    limit.start()
    console: list[str] = []
    try:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                if ENDED_WELL in line:
                    return ""
                console.append(line.strip())
                if PANIC in line:
                    break
    finally:
        limit.cancel()
        for child in _children(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return f"the kernel of User-Mode Linux does not run programs on this computer: {' / '.join(console[-3:])}"


def _children(process: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


class UmlHost:
    """The surroundings of a guest: forwarded ports, cables, a way to freeze it."""

    def __init__(self, guest: Guest, vm: UmlMachine) -> None:
        self.vm = vm
        self._nursery = guest.nursery
        self._open: dict[int, trio.CancelScope] = {}
        self.usb = UmlUsb(guest, vm.tap.connect)

    async def forward(self, port: int) -> int:
        """Forward a free loopback port of this computer to `port` in the guest, and return its number."""
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        number: int = listener.socket.getsockname()[1]
        self._open[number] = scope = trio.CancelScope()
        self._nursery.start_soon(self._serve, listener, port, scope)
        return number

    async def unforward(self, port: int) -> None:
        """Close a port opened by `forward`."""
        self._open.pop(port).cancel()

    def expose(self) -> Exposed:
        """Let the guest connect to a loopback port of this computer until the test ends."""
        listener = trio.SocketListener(self.vm.tap.listen())
        number: int = listener.socket.getsockname()[1]
        exposed = Exposed(f"{HOST_ADDRESS}:{number}")
        self._nursery.start_soon(trio.serve_listeners, exposed.carry, [listener])
        return exposed

    async def freeze(self) -> None:
        """Stop the guest's processor."""
        self.vm.freeze()

    async def _serve(self, listener: trio.SocketListener, port: int, scope: trio.CancelScope) -> None:
        async def carry(near: trio.SocketStream) -> None:
            async with near:
                try:
                    far = await self.vm.tap.connect(port)
                except OSError:  # no listener in the guest: the client's connection ends
                    return
                await _join(near, far)

        with scope:
            await trio.serve_listeners(carry, [listener])


class Exposed:
    """An address in the guest's network that leads to the loopback port `port` of this computer, once it is set."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = 0

    async def carry(self, near: trio.SocketStream) -> None:
        """Serve a connection of the guest; end it if nothing listens at the port."""
        async with near:
            try:
                far = await trio.open_tcp_stream("127.0.0.1", self.port)
            except OSError:
                return
            await _join(near, far)


async def _join(near: trio.SocketStream, far: trio.SocketStream) -> None:
    """Carry data in both directions until both streams have ended, and close `far`."""
    async with far, trio.open_nursery() as nursery:
        nursery.start_soon(_pump, near, far)
        await _pump(far, near)


async def _pump(source: trio.SocketStream, target: trio.SocketStream) -> None:
    try:
        async for part in source:
            await target.send_all(part)
        await target.send_eof()
    except trio.BrokenResourceError:
        await trio.aclose_forcefully(target)  # a reset on one side is passed on to the other
    except trio.ClosedResourceError:
        pass
