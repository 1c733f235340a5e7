"""Control socket of wpa_supplicant: requests with answers, and events."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from schema import ErrorKind, MachineError

LIMIT: Final = 10.0
"""Seconds for an answer; wpa_supplicant answers each request at once, without waiting for the radio."""
MAX_DATAGRAM: Final = 8192
"""Bytes of an answer or event; wpa_supplicant writes at most 4096. The rest of a longer one is dropped."""
MAX_REQUEST: Final = 8192
"""Bytes of a request, CTRL_IFACE_MAX_LEN of wpa_supplicant."""
MAX_WAITING: Final = 8
"""Requests without an answer; a socket of Linux keeps at least 10 datagrams, so that sending never waits."""
_EVENT: Final = re.compile(r"(IFNAME=\S+ )?<[0-9]>")  # with the interface at the global socket
_SOCKETS: Final = itertools.count()

Heard = Callable[[str], None]
"""Receiver of an event, without its level. It is called in the order of the events and returns at once."""


class _Answer:
    def __init__(self) -> None:
        self.arrived = trio.Event()
        self.text: str | None = None  # None: the connection was closed


class Control:
    """Connection with the control socket of an interface, see `connect`."""

    def __init__(self, path: Path, heard: Heard) -> None:
        self._path = path
        self._mine = path.parent / f"client-{next(_SOCKETS)}"
        self._socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM)
        self._heard = heard
        self._scope = trio.CancelScope()
        self._silent = False  # a request was not answered in time
        self._waiting: deque[_Answer] = deque()  # in the order of the requests, which is that of the answers

    async def open(self, nursery: trio.Nursery) -> None:
        """Receive in `nursery`, and attach; see `connect`."""
        await self._socket.bind(str(self._mine))
        nursery.start_soon(self._receive_all)
        await self.do("ATTACH")

    def close(self) -> None:
        """Stop receiving, and remove the socket. Requests without an answer raise UNAVAILABLE."""
        self._scope.cancel()
        while self._waiting:
            self._waiting.popleft().arrived.set()
        self._socket.close()
        self._mine.unlink(missing_ok=True)

    async def ask(self, request: str) -> str:
        """Return the answer to a request.

        TIMEOUT after LIMIT seconds, UNAVAILABLE if wpa_supplicant has ended or has not answered earlier requests,
        INVALID if the request is too long. A cancelled request may have been carried out.
        """
        data = request.encode()
        if len(data) > MAX_REQUEST:
            raise MachineError(f"{_shown(request)} has more than {MAX_REQUEST} bytes", kind=ErrorKind.INVALID)
        if len(self._waiting) >= MAX_WAITING:
            raise MachineError("wpa_supplicant does not answer", kind=ErrorKind.UNAVAILABLE)
        answer = _Answer()
        try:
            with trio.fail_after(LIMIT):
                self._waiting.append(answer)
                try:
                    # Not connected: wpa_supplicant replaces its socket if it could not send.
                    await self._socket.sendto(data, str(self._path))
                except BaseException:
                    self._waiting.remove(answer)
                    raise
                await answer.arrived.wait()
        except trio.TooSlowError:
            self._silent = True
            self._scope.cancel()
            raise MachineError(
                f"wpa_supplicant did not answer {_shown(request)} within {LIMIT:g} s", kind=ErrorKind.TIMEOUT
            ) from None
        except OSError as error:
            raise MachineError(
                f"wpa_supplicant cannot be asked through {self._path}: {error.strerror}", kind=ErrorKind.UNAVAILABLE
            ) from None
        if answer.text is None:
            raise MachineError(
                f"wpa_supplicant has ended before it answered {_shown(request)}", kind=ErrorKind.UNAVAILABLE
            )
        return answer.text

    async def do(self, request: str) -> None:
        """Send a request; UNAVAILABLE, without the values in it, unless it succeeds."""
        answer = await self.ask(request)
        if answer != "OK":
            raise MachineError(
                f"wpa_supplicant answers {answer[:40]!r} to {_shown(request)}", kind=ErrorKind.UNAVAILABLE
            )

    async def _receive_all(self) -> None:
        with self._scope, suppress(trio.ClosedResourceError):
            while True:
                data, sender = await self._socket.recvfrom(MAX_DATAGRAM)
                if sender == str(self._path):
                    self._received(data.decode("utf-8", "backslashreplace"))
        if self._silent:
            raise MachineError("wpa_supplicant does not answer", kind=ErrorKind.TIMEOUT)

    def _received(self, text: str) -> None:
        if event := _EVENT.match(text):
            self._heard(text[event.end() :])
        elif self._waiting:
            answer = self._waiting.popleft()
            answer.text = text.strip()
            answer.arrived.set()


def _shown(request: str) -> str:
    """Return a request without its value, which may be a secret."""
    words = request.split(" ")
    return " ".join(words[: 3 if words[0] == "SET_NETWORK" else 2 if words[0] == "SET" else 1])


async def connect(path: Path, heard: Heard, nursery: trio.Nursery) -> Control:
    """Attach to the control socket at `path`, and receive in `nursery` until the connection is closed.

    Its own socket is next to it, in a folder that only root can enter. The caller closes it. TIMEOUT or UNAVAILABLE if
    nothing answers there. If a later request is not answered, TIMEOUT is raised in `nursery` too.
    """
    control = Control(path, heard)
    try:
        await control.open(nursery)
    except BaseException:
        control.close()
        raise
    return control
