"""Named pipes, whose operations report to Trio's completion port."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

import trio

from schema import ErrorKind, MachineError
from support import run_once

assert sys.platform == "win32"

from support.windows import (
    ADMINISTRATORS,
    INVALID_HANDLE,
    OPEN_EXISTING,
    OVERLAPPED,
    READ,
    SERVICES,
    SYSTEM,
    WRITE,
    Overlapped,
    kernel32,
    last_error,
    only_for,
    open_handle,
    own_user,
    owner_of,
)

BUSY_LIMIT: Final = 5.0  # seconds to wait for a program that is about to take the next client

# From winbase.h and winerror.h
_DUPLEX: Final = 3  # PIPE_ACCESS_DUPLEX
_FIRST: Final = 0x80000  # FILE_FLAG_FIRST_PIPE_INSTANCE
_NOT_REMOTE: Final = 0x8  # PIPE_REJECT_REMOTE_CLIENTS; the rest of this mode is 0: bytes, not messages
_UNLIMITED: Final = 255  # PIPE_UNLIMITED_INSTANCES
_BUFFER: Final = 64 * 1024
_IDENTIFY: Final = (
    0x100000 | 0x10000
)  # SECURITY_SQOS_PRESENT, SECURITY_IDENTIFICATION: no program may act as its client
_PENDING: Final = 997  # ERROR_IO_PENDING
_CONNECTED: Final = frozenset({535, 232})  # ERROR_PIPE_CONNECTED; ERROR_NO_DATA: the client has left already
_ENDED: Final = frozenset({109, 232, 233})  # ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_PIPE_NOT_CONNECTED
_DENIED: Final = 5
_BUSY: Final = 231  # ERROR_PIPE_BUSY: every instance has a client

kernel32.CreateNamedPipeW.restype = ctypes.c_void_p


class PipeStream(trio.abc.Stream):
    """One end of a connected pipe. It owns its handle, which Trio's completion port knows."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle: int | None = handle.value

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, waiting for the reader. BrokenResourceError if the other end is closed."""
        handle = self._opened()
        if not data:
            await trio.lowlevel.checkpoint()
            return
        try:
            written = await trio.lowlevel.write_overlapped(handle, data)
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error
        if written != len(data):
            raise trio.BrokenResourceError(f"the pipe took {written} of {len(data)} bytes")

    async def wait_send_all_might_not_block(self) -> None:
        """Do nothing: the system does not tell."""
        self._opened()
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return bytes as soon as there are any; none at the end. BrokenResourceError if the system fails."""
        handle = self._opened()
        buffer = bytearray(max_bytes or _BUFFER)
        try:
            count = await trio.lowlevel.readinto_overlapped(handle, buffer)
        except OSError as error:
            if error.winerror not in _ENDED:
                raise trio.BrokenResourceError(error.strerror) from error
            self._opened()
            await trio.lowlevel.checkpoint()
            return b""
        return bytes(buffer[:count])

    async def aclose(self) -> None:
        """Close this end; what was sent can still be read. Tasks that wait here then raise ClosedResourceError."""
        handle, self._handle = self._handle, None
        if handle is not None:
            kernel32.CloseHandle(ctypes.c_void_p(handle))
        await trio.lowlevel.checkpoint()

    def _opened(self) -> int:
        if self._handle is None:
            raise trio.ClosedResourceError("this end of the pipe is closed")
        return self._handle


class PipeListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts clients of a named pipe. One instance always waits for a client, so that no other program gets it."""

    def __init__(self, name: str) -> None:
        """Create the pipe. OSError if it exists."""
        self._name = name
        self._next: ctypes.c_void_p | None = _create(name, first=True)

    async def accept(self) -> PipeStream:
        """Wait for a client. OSError closes the listener: the system has no room for a further instance of the pipe."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._next is None:
            raise trio.ClosedResourceError("this listener is closed")
        instance = self._next
        request = Overlapped()  # stays in memory until the system has answered it, also when this is cancelled
        if kernel32.ConnectNamedPipe(instance, ctypes.byref(request)) or ctypes.get_last_error() == _PENDING:
            await trio.lowlevel.wait_overlapped(instance.value, ctypes.addressof(request))
        elif ctypes.get_last_error() in _CONNECTED:
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            raise last_error()
        self._next = None
        try:
            self._next = _create(self._name, first=False)
        except OSError:
            kernel32.CloseHandle(instance)
            raise
        return PipeStream(instance)

    async def aclose(self) -> None:
        """Stop to accept clients. Those that were accepted stay. Tasks that wait here raise ClosedResourceError."""
        instance, self._next = self._next, None
        if instance is not None:
            kernel32.CloseHandle(instance)
        await trio.lowlevel.checkpoint()


async def open_local_listener(path: Path) -> trio.abc.Listener[trio.abc.Stream]:
    """Listen at a path. MachineError if that is not possible, or another program listens there."""
    await trio.lowlevel.checkpoint()
    try:
        return PipeListener(name_of(path))
    except OSError as error:
        another = error.winerror == _DENIED
        raise MachineError(
            f"cannot listen on the pipe {name_of(path)} for {path}: "
            f"{'another program has created it' if another else error.strerror}",
            kind=ErrorKind.PRECONDITION,
            remedy="stop that program; Process Explorer of Sysinternals finds it by the pipe's name" if another else "",
        ) from None


async def open_local_stream(path: Path) -> trio.abc.Stream:
    """Connect to the program that listens at a path.

    PermissionError if it is that of another user; other OSErrors if no program listens.
    """
    name = name_of(path)
    end = trio.current_time() + BUSY_LIMIT
    while True:
        try:
            handle = open_handle(name, READ | WRITE, OPEN_EXISTING, OVERLAPPED | _IDENTIFY, share=0)
        except OSError as error:
            left = end - trio.current_time()
            if error.winerror != _BUSY or left <= 0:
                raise
            await run_once("pipe", partial(kernel32.WaitNamedPipeW, name, int(left * 1000) + 1))
            continue
        try:
            _check_owner(handle, path)
            trio.lowlevel.register_with_iocp(_number(handle))
        except BaseException:
            kernel32.CloseHandle(handle)
            raise
        await trio.lowlevel.cancel_shielded_checkpoint()
        return PipeStream(handle)


def name_of(path: Path) -> str:
    """Return the name of the pipe for a path; paths that differ only in case have the same, as for files."""
    digest = hashlib.sha256(os.path.normcase(os.path.abspath(path)).encode()).hexdigest()
    return rf"\\.\pipe\machine-{path.name}-{digest[:16]}"


def _create(name: str, *, first: bool) -> ctypes.c_void_p:
    """Return a new instance of the pipe, which Trio's completion port knows. Raises OSError."""
    flags = _DUPLEX | OVERLAPPED | (_FIRST if first else 0)
    with only_for(own_user(), SYSTEM, ADMINISTRATORS) as attributes:
        created = kernel32.CreateNamedPipeW(name, flags, _NOT_REMOTE, _UNLIMITED, _BUFFER, _BUFFER, 0, attributes)
        if created == INVALID_HANDLE:
            raise last_error(name)
    handle = ctypes.c_void_p(created)
    try:
        trio.lowlevel.register_with_iocp(_number(handle))
    except BaseException:
        kernel32.CloseHandle(handle)
        raise
    return handle


def _check_owner(handle: ctypes.c_void_p, path: Path) -> None:
    """Raise PermissionError if an unprivileged program has taken the name of the pipe before its own program."""
    owner = owner_of(handle)
    if owner not in (SYSTEM, ADMINISTRATORS, own_user()) and not owner.startswith(SERVICES):
        raise PermissionError(
            13, f"the pipe belongs to another user ({owner}), who may not run this service", str(path)
        )


def _number(handle: ctypes.c_void_p) -> int:
    assert handle.value is not None
    return handle.value
