"""The command agent of the guest: runs programs and moves files for the host, over a virtio-serial port or a terminal.

One JSON object per line in each direction. A session begins with `hello`, which ends everything that an earlier session
started, except programs started to be kept, and waits for that: also daemons, and children that a program has left.
At the host's request, Python programs are forked by the interpreter from interpreter.py. This file has no dependencies:
it is copied into the guest's image.
"""

from __future__ import annotations

import array
import base64
import ctypes
import errno
import fcntl
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
import tty
from typing import Any

import trio

PORT = "/dev/virtio-ports/rig.agent"
PORT_OPTION = "rig.port="  # on the kernel's command line: the terminal that replaces PORT
CHUNK = 65536
INTERPRETER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interpreter.py")
TREE = "MACHINE_PROCESS_TREE"  # of nursery_graph.process, which adds its own marks
MARK = "rig"  # inherited by everything that a program starts, unless the program is to be kept
END_LIMIT = 20.0  # seconds for the end of killed programs; one that waits for a broken disk may never end
SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


class Port:
    """A virtio-serial port, or a terminal in raw mode.

    Reads of a virtio-serial port return no data without a host: SIGIO reports that one has connected. A terminal
    always has a host, and a SIGIO for all received data would only cost time.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        self._terminal = os.isatty(self._fd)
        if self._terminal:
            tty.setraw(self._fd)
        self._writing = trio.Lock()
        self.host = trio.Event()  # replaced whenever a host may have connected

    async def notice_host(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        if self._terminal:
            task_status.started()
            return
        with trio.open_signal_receiver(signal.SIGIO) as signals:
            fcntl.fcntl(self._fd, fcntl.F_SETOWN, os.getpid())
            # Not without a receiver: SIGIO would end this process, and data that the host had sent would be lost.
            fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
            task_status.started()
            async for _ in signals:
                self.host.set()

    async def read(self) -> bytes:
        while True:
            await trio.lowlevel.checkpoint()
            host, self.host = self.host, trio.Event()
            try:
                data = os.read(self._fd, CHUNK)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._fd)
                continue
            if data:
                return data
            if not host.is_set():
                await self.host.wait()

    async def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        async with self._writing:
            while data:
                try:
                    data = data[os.write(self._fd, data) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._fd)


class Forked:
    """A program forked by the interpreter: the parts of trio.Process that the agent uses."""

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = trio.lowlevel.FdStream(stdin)
        self.stdout = trio.lowlevel.FdStream(stdout)
        self.stderr = trio.lowlevel.FdStream(stderr)

    async def wait(self) -> int:
        """Return the exit status, negative for a signal; call this once."""
        descriptor = os.pidfd_open(self.pid)
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, os.WNOHANG)[1])  # noqa: ASYNC222 - has ended
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class Interpreter:
    """The warm interpreter, started on first use."""

    def __init__(self) -> None:
        self._asking = trio.Lock()
        self._socket: trio.socket.SocketType | None = None

    async def ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Send a request. Forked programs become children of this process, as orphans do during the request."""
        async with self._asking:
            if self._socket is None:
                self._socket = self._start()
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
            _adopt_orphans(True)
            try:
                await self._socket.sendmsg([json.dumps(request).encode()], [rights] if descriptors else [])
                data = await self._socket.recv(CHUNK)
            finally:
                _adopt_orphans(False)
            if not data:
                self._socket = None
                raise OSError(errno.ECONNRESET, "the ready interpreter has ended")
        answer: dict[str, Any] = json.loads(data)
        return answer

    async def fork(self, request: dict[str, Any]) -> Forked:
        """Run a module as a separate program."""
        (stdin, to), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        theirs = [stdin, stdout, stderr]
        try:
            answer = await self.ask(request, theirs)
        except BaseException:
            theirs += [to, out, err]
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return Forked(answer["pid"], to, out, err)

    def _start(self) -> trio.socket.SocketType:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}  # read once, when it starts
        with its:
            subprocess.Popen([sys.executable, INTERPRETER], stdin=its, cwd="/", env=env, start_new_session=True)
        return trio.socket.from_stdlib_socket(mine)


def _adopt_orphans(adopt: bool) -> None:
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)


class Agent:
    """The handler of a port's requests."""

    def __init__(self, port: Port, nursery: trio.Nursery) -> None:
        self._port = port
        self._nursery = nursery
        self._interpreter = Interpreter()
        self._running: dict[int, tuple[trio.Process | Forked, bool]] = {}
        self._inputs: dict[int, trio.MemorySendChannel[bytes]] = {}

    async def serve(self) -> None:
        rest = b""
        while True:
            *lines, rest = (rest + await self._port.read()).split(b"\n")
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:  # an incomplete line of a host that disconnected
                    continue
                await self._handle(message)

    async def _handle(self, message: dict[str, Any]) -> None:
        try:
            await getattr(self, "do_" + message["do"])(message["id"], message)
        except OSError as error:
            await self._port.send({"id": message["id"], "errno": error.errno, "error": str(error)})

    async def do_hello(self, number: int, message: dict[str, Any]) -> None:
        running = [process for process, kept in self._running.values() if not kept and process.returncode is None]
        with trio.move_on_after(END_LIMIT):
            for process in running:
                await _end(process.pid)
            while left := _marked_processes():
                for pid in left:
                    await _end(pid)
        if "time" in message:
            time.clock_settime(time.CLOCK_REALTIME, message["time"])
        await self._port.send({"id": number, "uptime": time.clock_gettime(time.CLOCK_BOOTTIME)})

    async def do_import(self, number: int, message: dict[str, Any]) -> None:
        """Import modules in the warm interpreter; `failed` lists those that it could not import."""
        answer = await self._interpreter.ask({"imports": message["imports"]}, [])
        await self._port.send({"id": number, **answer})

    async def do_start(self, number: int, message: dict[str, Any]) -> None:
        user = pwd.getpwnam(message["user"]) if message.get("user") else None
        groups = os.getgrouplist(user.pw_name, user.pw_gid) if user else []
        mark = {} if message.get("keep") else {TREE: MARK}
        env = {**os.environ, "HOME": user.pw_dir if user else "/root", **mark, **message.get("env", {})}
        cwd = message.get("cwd") or "/"
        process: trio.Process | Forked
        if "module" in message:
            identity = [user.pw_uid, user.pw_gid, groups] if user else []
            order = {key: message[key] for key in ("module", "arguments", "descriptors", "imports")}
            process = await self._interpreter.fork({**order, "env": env, "cwd": cwd, "user": identity})
        else:
            account: dict[str, Any] = {}
            if user is not None:
                account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}
            process = await trio.lowlevel.open_process(
                message["argv"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                start_new_session=True,
                **account,
            )
        self._running[number] = (process, bool(message.get("keep")))
        self._inputs[number], data = trio.open_memory_channel[bytes](1000)
        await self._port.send({"id": number, "pid": process.pid})
        self._nursery.start_soon(self._follow, number, process, data)

    async def _follow(
        self, number: int, process: trio.Process | Forked, data: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feed, process, data)
            async with trio.open_nursery() as output:
                output.start_soon(self._forward, number, "out", process.stdout)
                output.start_soon(self._forward, number, "err", process.stderr)
                status = await process.wait()
            nursery.cancel_scope.cancel()
        del self._running[number]
        del self._inputs[number]
        await self._port.send({"id": number, "exit": status})

    async def _feed(self, process: trio.Process | Forked, data: trio.MemoryReceiveChannel[bytes]) -> None:
        assert process.stdin is not None
        async with process.stdin:
            try:
                async for part in data:
                    await process.stdin.send_all(part)
            except trio.BrokenResourceError:
                pass

    async def _forward(self, number: int, name: str, stream: trio.abc.ReceiveStream | None) -> None:
        assert stream is not None
        async with stream:
            async for part in stream:
                await self._port.send({"id": number, name: base64.b64encode(part).decode()})

    async def do_input(self, number: int, message: dict[str, Any]) -> None:
        channel = self._inputs.get(number)
        if channel is None:
            return
        if message.get("data"):
            channel.send_nowait(base64.b64decode(message["data"]))
        if message.get("end"):
            channel.close()

    async def do_signal(self, number: int, message: dict[str, Any]) -> None:
        if number in self._running:
            process = self._running[number][0]
            if message.get("only"):
                process.send_signal(message["number"])
            else:
                _kill(process, message["number"])

    async def do_read(self, number: int, message: dict[str, Any]) -> None:
        await self._port.send({"id": number, "data": base64.b64encode(_read(message["path"])).decode()})

    async def do_write(self, number: int, message: dict[str, Any]) -> None:
        _write(message["path"], base64.b64decode(message["data"]), message.get("mode"))
        await self._port.send({"id": number})


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes, mode: int | None) -> None:
    with open(path, "wb") as file:
        file.write(data)
    if mode is not None:
        os.chmod(path, mode)


def _kill(process: trio.Process | Forked, number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


async def _end(pid: int) -> None:
    """Kill a process and wait for its end."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        await trio.lowlevel.wait_readable(descriptor)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def _marked_processes() -> list[int]:
    """Return the processes that descend from programs that are not kept."""
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit() and _marked(entry.path)]


def _marked(path: str) -> bool:
    try:
        with open(f"{path}/environ", "rb") as file:
            return f"{TREE}={MARK}".encode() in file.read()
    except OSError:  # it has ended
        return False


def port_path() -> str:
    """Return the path of the port: PORT, unless the kernel's command line has another."""
    with open("/proc/cmdline") as file:
        words = file.read().split()
    return next((word.removeprefix(PORT_OPTION) for word in words if word.startswith(PORT_OPTION)), PORT)


async def main() -> None:
    port = Port(port_path())
    async with trio.open_nursery() as nursery:
        await nursery.start(port.notice_host)
        await Agent(port, nursery).serve()


if __name__ == "__main__":
    trio.run(main)
