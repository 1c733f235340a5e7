"""Runs the machine on asyncio, which CPython and MicroPython both have: clocks, connections, and the time limits."""

import asyncio
import gc
import os
import sys
import time

from micro.wire.bounds import Bounds
from micro.wire.faults import EXHAUSTED, INTERNAL, CallFailure
from micro.wire.http2 import PREFACE, Budget, Connection, Stream
from micro.wire.web import WebConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micro.engine.calls import Calls

CHUNK = 512  # bytes that are read at once, so that no peer keeps the loop for long
TICK_MS = 100
SLOW_TICKS = 10  # ticks between two applications of the time limits of connections
RESERVE = 4096  # bytes of the heap that must be free for a new connection
EPOCH_2000 = 946684800  # seconds from 1970, where time begins on some boards
VALID = 1700000000  # an earlier time is that of a clock that has not been set
TCP, NODELAY = 6, 1
MICRO = sys.implementation.name == "micropython"


class Clock:
    """The clocks and the chance of a host; a part of its Port."""

    def __init__(self) -> None:
        self._last = self._ticks()
        self._now = 1
        self._offset = EPOCH_2000 if time.gmtime(0)[0] == 2000 else 0

    def _ticks(self) -> int:
        if MICRO:
            return time.ticks_ms()  # type: ignore[attr-defined, no-any-return]  # of MicroPython
        return int(time.monotonic() * 1000)

    def now(self) -> int:
        """Return milliseconds since the start. MicroPython's own ticks wrap around after days."""
        ticks = self._ticks()
        self._now += time.ticks_diff(ticks, self._last) if MICRO else ticks - self._last  # type: ignore[attr-defined]  # of MicroPython
        self._last = ticks
        return self._now

    def unix(self) -> "tuple[int, int]":
        """Return seconds and nanoseconds since 1970, (0, 0) before the clock has been set."""
        nanos = time.time_ns()
        seconds = nanos // 1000000000 + self._offset
        return (seconds, nanos % 1000000000) if seconds > VALID else (0, 0)

    async def sleep(self, ms: int) -> None:
        """Wait."""
        if MICRO:
            await asyncio.sleep_ms(ms)  # type: ignore[attr-defined]  # of MicroPython
        else:
            await asyncio.sleep(ms / 1000)

    def random(self, count: int) -> bytes:
        """Return random bytes of the system."""
        return os.urandom(count)

    def free(self) -> int:
        """Return the bytes of the heap that are free after a collection."""
        gc.collect()
        return gc.mem_free() if MICRO else 1 << 20  # type: ignore[attr-defined]  # of MicroPython

    def alive(self) -> None:
        """Say that the loop runs; for hosts with a watchdog."""

    def restart(self) -> None:
        """End the program; who started it starts it again."""
        sys.exit(0)


class Link:
    """A connection of HTTP/2 and what carries its bytes."""

    def __init__(self, connection: "Connection | WebConnection", writer: "Any", owner: "str | None") -> None:
        self.connection = connection
        self.writer = writer
        self.owner = owner  # of all calls, for a connection that somebody else has authenticated
        self.tasks: dict[int, Any] = {}
        self.task: Any = None
        self.flushing = 0  # since when

    async def flush(self, now: int) -> None:
        """Send what there is. A task that flushes already also sends what is added meanwhile."""
        if self.flushing:
            return
        self.flushing = now
        try:
            while True:
                data = self.connection.output()
                if not data:
                    return
                self.writer.write(data)
                await self.writer.drain()
        finally:
            self.flushing = 0


class Host:
    """Serves a machine on connections."""

    def __init__(self, calls: "Calls", bounds: Bounds) -> None:
        self.calls = calls
        self.machine = calls.machine
        self.bounds = bounds
        self.budget = Budget(bounds.held)
        self.links: list[Link] = []
        self.refused = 0
        self.each_second: list[Callable[[], None]] = []
        self._ticks = 0

    async def accept(self, reader: "Any", writer: "Any") -> None:
        """Serve a connection of the network, if there is room."""
        try:
            socket = getattr(writer, "s", None)
            if socket is not None and hasattr(socket, "setsockopt"):
                socket.setsockopt(TCP, NODELAY, 1)  # otherwise small answers wait for acknowledgements
            if self._has_room():
                await self.serve(reader, writer, None)
            else:
                self.refused += 1
        except (MemoryError, OSError, EOFError):
            gc.collect()
        finally:
            await close(writer)

    def _has_room(self) -> bool:
        """Return whether one more connection may be served; replaces one that is idle for long."""
        if self.machine.port.free() < RESERVE:
            return False
        network = [link for link in self.links if link.owner is None]
        if len(network) < self.bounds.connections:
            return True
        now = self.machine.port.now()
        idle = [link for link in network if not link.connection.calls and not link.connection.over]
        idle = [link for link in idle if now - link.connection.used > self.bounds.idle_ms]
        if not idle:
            return False
        idle.sort(key=lambda link: link.connection.used)
        idle[0].connection.close("another client needs the connection")
        self._end(idle[0])
        return True

    async def serve(self, reader: "Any", writer: "Any", owner: "str | None") -> None:
        """Serve a connection until it ends; `owner` is the caller of all its calls, None if each says who it is."""
        port = self.machine.port
        connection: Connection | WebConnection = Connection(self.bounds, self.budget, port.now())
        connection.trusted = owner is not None or self.machine.access.open
        link = Link(connection, writer, owner)
        link.task = asyncio.current_task()
        self.links.append(link)
        try:
            data = await reader.read(CHUNK)
            if owner is None and data[:3] != PREFACE[:3]:
                link.connection = connection = WebConnection(self.bounds, self.budget, port.now())
                connection.trusted = self.machine.access.open
            while data:
                connection.receive(data, port.now())
                self._carry_out(link)
                await link.flush(port.now())
                data = b"" if connection.over else await reader.read(CHUNK)
        except MemoryError:
            gc.collect()
            self.machine.log("error", "memory", "no memory for a request: its connection was closed")
        except (OSError, EOFError):
            pass
        finally:
            self.links.remove(link)
            connection.fail_all()
            for task in list(link.tasks.values()):
                task.cancel()

    def _carry_out(self, link: Link) -> None:
        """Answer the calls that have arrived: those that take time in a task of their own."""
        connection = link.connection
        while connection.cancelled:
            task = link.tasks.get(connection.cancelled.pop().number)
            if task is not None:
                task.cancel()
        while connection.ready:
            stream = connection.ready.pop(0)
            try:
                reply = self.calls.call(stream.headers, stream.body, link.owner)
                connection.trusted = True
                if hasattr(reply, "send"):
                    link.tasks[stream.number] = asyncio.create_task(self._answer(link, stream, reply))
                else:
                    connection.answer(stream, reply)
            except CallFailure as failure:
                connection.fail(stream, failure.status, failure.text)
            except MemoryError:
                gc.collect()
                connection.fail(stream, EXHAUSTED, "the server has no memory for this call: try again")
            except Exception as error:
                self._broken(link, stream, error)

    async def _answer(self, link: Link, stream: Stream, reply: "Any") -> None:
        connection, port = link.connection, self.machine.port
        try:
            connection.answer(stream, await reply)
        except CallFailure as failure:
            connection.fail(stream, failure.status, failure.text)
        except MemoryError:
            gc.collect()
            connection.fail(stream, EXHAUSTED, "the server has no memory for this call: try again")
        except Exception as error:
            self._broken(link, stream, error)
        finally:
            link.tasks.pop(stream.number, None)
        try:
            await link.flush(port.now())
        except (OSError, EOFError):
            pass  # the task that reads ends the connection

    def _broken(self, link: Link, stream: Stream, error: Exception) -> None:
        """Answer a call in which this program has a defect; the others go on."""
        link.connection.fail(stream, INTERNAL, f"a defect of the server: {error!r}")
        path = stream.headers.get(b":path")
        self.machine.log("error", "calls", f"{path!r}: {error!r}")

    async def run(self) -> None:
        """Watch over sessions and connections until the machine restarts; never fails for lack of memory."""
        machine = self.machine
        while not machine.restart_at or machine.port.now() < machine.restart_at:
            try:
                await machine.port.sleep(TICK_MS)
                machine.port.alive()
                machine.tick()
                self._ticks += 1
                if self._ticks % SLOW_TICKS == 0:
                    for watch in self.each_second:
                        watch()
                    await self._time_limits()
            except MemoryError:
                gc.collect()

    async def _time_limits(self) -> None:
        now = self.machine.port.now()
        for link in list(self.links):
            connection = link.connection
            connection.tick(now)
            if link.flushing and now - link.flushing > self.bounds.stall_ms:
                connection.over = connection.over or "the peer reads nothing"
                self._end(link)
            elif connection.over:
                self._end(link)
            elif not link.flushing:
                asyncio.create_task(self._flush(link))  # noqa: RUF006 - the link outlives it

    async def _flush(self, link: Link) -> None:
        try:
            await link.flush(self.machine.port.now())
        except (OSError, EOFError, MemoryError):
            self._end(link)

    def _end(self, link: Link) -> None:
        """End a connection whose task waits for bytes of its peer."""
        try:
            if not link.flushing:
                link.writer.write(link.connection.output())
        except (OSError, MemoryError):
            pass
        if link.task is not None:
            link.task.cancel()


async def close(writer: "Any") -> None:
    """Close a connection. On MicroPython, only `wait_closed` does that."""
    try:
        writer.close()
        await writer.wait_closed()
    except (OSError, EOFError):
        pass
