"""Network namespaces of the guest: programs, addresses and sockets in them."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import trio

NAMES = Path("/run/netns")
CONFIGURED = Path("/etc/netns")  # `ip netns exec` mounts these files over /etc, by namespace
NEW_NET = 0x40000000  # CLONE_NEWNET of linux/sched.h
REQUEST_LIMIT = 10.0  # seconds within which a client must have sent its request
_libc = ctypes.CDLL(None, use_errno=True)

Answer = tuple[int, Mapping[str, str], str]
"""Status, headers and body of an answer."""


async def command(*argv: str | Path, input: str = "") -> str:  # noqa: A002 - as subprocess.run calls it
    """Run a program and return its output; OSError with the output if it fails."""
    words = [str(word) for word in argv]
    done = await trio.run_process(
        words, stdin=input.encode(), capture_stdout=True, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)} ended with {done.returncode}:\n{input}{output}")
    return output


async def end(pid: str) -> None:
    """Kill a process; return when it has ended."""
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


class Namespace:
    """A network namespace, which exists from `open` to `close`; `close` kills every process in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self) -> None:
        """Create it, with loopback up."""
        await command("ip", "netns", "add", self.name)
        await self.ip("link set lo up")

    async def close(self) -> None:
        """Kill its processes and remove it."""
        if not (NAMES / self.name).exists():
            return
        await self.kill()
        await command("ip", "netns", "del", self.name)

    async def kill(self) -> None:
        """Kill every process in it; return when they have ended."""
        for word in (await command("ip", "netns", "pids", self.name)).split():
            await end(word)

    async def ip(self, *lines: str) -> None:
        """Run commands of ip(8), such as "link set eth0 up"."""
        await command("ip", "-n", self.name, "-batch", "-", input="".join(f"{line}\n" for line in lines))

    async def run(self, *argv: str | Path) -> str:
        """Run a program in it; see `command`."""
        return await command("ip", "netns", "exec", self.name, *argv)

    def resolve_by(self, servers: list[str]) -> None:
        """Set the name servers of programs that are started in it from now on."""
        folder = CONFIGURED / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "resolv.conf").write_text("".join(f"nameserver {server}\n" for server in servers))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block in it: sockets created there belong to it. The block must not await."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        mine = os.open(NAMES / self.name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(mine)
            yield
        finally:
            _enter(before)
            os.close(mine)
            os.close(before)

    async def serve_web(
        self,
        address: str,
        answer: Callable[[str, str], Answer],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve HTTP on port 80 of an address, until cancelled: `answer(host, path)` is sent for every request."""
        with self.inside():
            plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener = trio.socket.from_stdlib_socket(plain)
        await listener.bind((address, 80))
        listener.listen(50)

        async def handle(stream: trio.SocketStream) -> None:
            with trio.move_on_after(REQUEST_LIMIT):
                try:
                    await stream.send_all(_response(await _request(stream), answer))
                except (trio.BrokenResourceError, ValueError):  # a client that left, or that does not speak HTTP
                    pass

        await trio.serve_listeners(handle, [trio.SocketListener(listener)], task_status=task_status)


async def _request(stream: trio.SocketStream) -> tuple[str, str]:
    """Return host and path of a request; ValueError if it is malformed."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = await stream.receive_some()
        if not part:
            raise ValueError("the request ends too early")
        data += part
    first, *headers = data.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")
    _, path, _ = first.split()
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)}
    return fields.get("host", "").partition(":")[0], path


def _response(request: tuple[str, str], answer: Callable[[str, str], Answer]) -> bytes:
    status, headers, body = answer(*request)
    fields = {
        "Connection": "close",
        **({} if status == 204 else {"Content-Length": str(len(body.encode()))}),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} -\r\n{lines}\r\n{body}".encode()


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, NEW_NET):
        raise OSError(ctypes.get_errno(), "setns")
