"""Delivery of the records of wrtc's native threads to requests and handlers on Trio: one descriptor, no thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import outcome
import trio

from schema import ErrorKind, MachineError

BATCH: Final = 128
"""Records handled before a checkpoint: about 1 ms, or 3 ms with the largest messages."""

Handler = Callable[[str, tuple[Any, ...]], None]


class _Request:
    """A call that waits for its record."""

    __slots__ = ("done", "owner", "result")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.done = trio.Event()
        self.result: outcome.Outcome[Any] | None = None

    def settle(self, result: outcome.Outcome[Any]) -> None:
        self.result = result
        self.done.set()


class Mailbox:
    """Requests and handlers of one native mailbox. `box` has the methods of `wrtc.Mailbox`."""

    def __init__(self, box: Any) -> None:
        self._box = box
        self._requests: dict[int, _Request] = {}
        self._handlers: dict[int, Handler] = {}
        self._token = 0

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver records until cancelled."""
        descriptor = self._box.enableWake()
        if descriptor is None:
            raise MachineError(
                "wrtc cannot create its wake descriptor",
                kind=ErrorKind.EXHAUSTED,
                remedy="raise the limit of open files, and close connections that are not used",
            )
        task_status.started()
        while True:
            if self._deliver_batch():
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(descriptor)
                self._box.ackWake()

    async def call(self, owner: object, method: Callable[..., None], *arguments: Any) -> Any:
        """Call an asynchronous native method; return its result or raise its exception.

        Cancelled, it forgets the request: the record that arrives later is dropped. `abandon(owner)` ends it too.
        """
        self._token += 1
        token = self._token
        request = self._requests[token] = _Request(owner)
        try:
            method(self._box, token, *arguments)
            await request.done.wait()
        finally:
            del self._requests[token]
        assert request.result is not None
        return request.result.unwrap()

    def abandon(self, owner: object, error: Exception) -> None:
        """End all requests of an owner with an error: a closed connection does not answer them."""
        for request in self._requests.values():
            if request.owner is owner and not request.done.is_set():
                request.settle(outcome.Error(error))

    def bind(self, native: Any, handler: Handler) -> int:
        """Pass events of a native object, by name and arguments, to a handler; return the number for `release`."""
        number: int = native._id
        self._handlers[number] = handler
        native._bind(self._box)
        return number

    def release(self, number: int) -> None:
        """Drop further events of a native object."""
        self._handlers.pop(number, None)

    def close(self) -> None:
        """Drop all records, also those that native threads post later."""
        self._handlers.clear()
        self._box.close()

    def _deliver_batch(self) -> bool:
        """Handle up to BATCH records; return whether there may be more."""
        take = self._box.take
        for _ in range(BATCH):
            record = take()
            if record is None:
                return False
            name, token, failed, arguments = record
            if name is not None:
                handler = self._handlers.get(arguments[0]._id)
                if handler is not None:
                    handler(name, arguments[1:])
            elif (request := self._requests.get(token)) is not None and not request.done.is_set():
                first: Any = arguments[0] if arguments else None
                request.settle(outcome.Error(first) if failed else outcome.Value(first))
        return True
