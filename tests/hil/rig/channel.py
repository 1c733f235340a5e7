"""The host's side of the command agent: requests, answers, and programs whose output is kept."""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from signal import SIGTERM
from typing import Any

import trio

from tests.hil.rig.lines import Gone, receive_lines
from tests.hil.rig.vm import VirtualMachine

HELLO_AGAIN = 15.0  # seconds without an answer, after which `hello` is sent again; a boot takes about 5


class GuestProcess:
    """A program in the guest. `stdout` and `stderr` grow while it runs; `returncode` is None until it ends."""

    def __init__(self, channel: Channel, number: int, what: str) -> None:
        self._channel = channel
        self.number = number
        self.what = what
        self.pid = 0
        self.stdout = ""
        self.stderr = ""
        self.returncode: int | None = None
        self._changed = trio.Event()
        self._lines, self.lines = trio.open_memory_channel[str](10_000)
        self._rest = ""

    @property
    def output(self) -> str:
        """Return stdout and stderr together, for messages."""
        return self.stdout + self.stderr

    async def wait(self) -> int:
        """Wait for the end and return the exit status, negative for a signal."""
        await self._until(lambda: self.returncode is not None)
        assert self.returncode is not None
        return self.returncode

    async def wait_output(self, text: str) -> None:
        """Return once `text` is in the program's output. AssertionError if it ends without it."""
        await self._until(lambda: text in self.stdout or text in self.stderr or self.returncode is not None)
        assert text in self.output, f"{self.what} ended with {self.returncode} before it wrote {text!r}:\n{self.output}"

    async def write(self, data: str | bytes) -> None:
        """Send data to its standard input."""
        raw = data.encode() if isinstance(data, str) else data
        await self._channel.send("input", self.number, data=base64.b64encode(raw).decode())

    async def close_input(self) -> None:
        """Close its standard input."""
        await self._channel.send("input", self.number, end=True)

    async def signal(self, number: int = SIGTERM, *, group: bool = True) -> None:
        """Send a signal to it and, with `group`, to everything it started."""
        await self._channel.send("signal", self.number, number=int(number), only=not group)

    async def stop(self, number: int = SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit status."""
        if self.returncode is None:
            await self.signal(number)
        return await self.wait()

    async def wait_change(self) -> None:
        """Return after new output or the end of the program; AssertionError if it has already ended."""
        assert self.returncode is None, f"{self.what} ended with {self.returncode}:\n{self.output}"
        if self._channel.closed:
            raise Gone(f"the guest is gone while {self.what} ran")
        await self._changed.wait()

    async def _until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self.wait_change()

    def _take(self, message: Mapping[str, Any]) -> None:
        if "out" in message:
            text = base64.b64decode(message["out"]).decode(errors="replace")
            self.stdout += text
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                try:
                    self._lines.send_nowait(line)
                except trio.WouldBlock:
                    pass
        if "err" in message:
            self.stderr += base64.b64decode(message["err"]).decode(errors="replace")
        if "exit" in message:
            self.returncode = message["exit"]
            self._lines.close()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class Channel:
    """A session with the agent."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._numbers = itertools.count(int.from_bytes(os.urandom(5)) << 12)
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._processes: dict[int, GuestProcess] = {}
        self._sending = trio.Lock()
        self.closed = False

    async def send(self, do: str, number: int, /, **fields: Any) -> None:
        """Send a request without waiting."""
        data = json.dumps({"do": do, "id": number, **fields}).encode()
        async with self._sending:
            await self._stream.send_all(b"\n" + data + b"\n")

    async def ask(self, do: str, *, process: GuestProcess | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request and return its answer; OSError if the guest reports an error."""
        number = process.number if process is not None else next(self._numbers)
        answers, answered = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[number] = answers
        try:
            await self.send(do, number, **fields)
            try:
                answer = await answered.receive()
            except trio.EndOfChannel:
                raise Gone("the guest is gone") from None
        finally:
            self._answers.pop(number, None)
        if "error" in answer:
            raise OSError(answer["errno"], answer["error"])
        return answer

    async def start(self, argv: Sequence[str], **fields: Any) -> GuestProcess:
        """Start a program."""
        process = self.attach(next(self._numbers), " ".join(argv)[:200])
        answer = await self.ask("start", process=process, argv=list(argv), **fields)
        process.pid = answer["pid"]
        return process

    def attach(self, number: int, what: str) -> GuestProcess:
        """Return a program that an earlier session started with `keep`."""
        process = self._processes[number] = GuestProcess(self, number, what)
        return process

    async def receive(self) -> None:
        """Receive messages from the guest until it is gone; run this in a nursery."""
        try:
            async with self._stream, aclosing(receive_lines(self._stream)) as lines:
                async for message in lines:
                    self._take(message)
        except trio.BrokenResourceError:
            pass
        finally:
            self.closed = True
            for answers in self._answers.values():
                answers.close()
            for process in self._processes.values():
                process._wake()

    def _take(self, message: dict[str, Any]) -> None:
        if "do" in message:  # our own message: a serial line echoes until the agent runs
            return
        number = message.get("id", -1)
        process = self._processes.get(number)
        if process is not None and message.keys() & {"out", "err", "exit"}:
            process._take(message)
        elif number in self._answers:
            self._answers.pop(number).send_nowait(message)


async def connect_channel(vm: VirtualMachine, nursery: trio.Nursery, **hello: Any) -> Channel:
    """Connect to the agent and begin a session; programs of the previous session end now."""
    channel = Channel(await vm.open_agent())
    nursery.start_soon(channel.receive)
    while True:
        # A serial line discards what arrives between the agent's opening it and making it raw.
        with trio.move_on_after(HELLO_AGAIN):
            await channel.ask("hello", **hello)
            return channel
