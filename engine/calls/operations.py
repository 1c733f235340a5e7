"""Operations: the calls in progress, which can be listed, cancelled and awaited by id."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

import trio

from engine.views.status import OperationStatus
from schema import ErrorKind, MachineError

OPERATION_KEY: Final = "opid"  # metadata key of the wire, in requests and replies


def _new_id() -> str:
    """Return a random UUID of version 4, as text; uuid.uuid4 takes four times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Operation:
    """A call, or several nested calls with the same id; it ends when the last of them ends."""

    __slots__ = ("_done", "arguments", "cancelled", "id", "method", "resource", "scopes", "session", "started")

    def __init__(
        self,
        id: str,  # noqa: A002 - the wire calls it id
        method: str,
        resource: str,
        session: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.arguments = arguments or {}
        self.id = id
        self.method = method
        self.resource = resource
        self.session = session
        self.started = datetime.now(UTC)
        self.cancelled = False
        self.scopes: list[trio.CancelScope] = []
        self._done: trio.Event | None = None

    def cancel(self) -> None:
        """Cancel the calls of this operation without waiting for them."""
        self.cancelled = True
        for scope in self.scopes:
            scope.cancel()

    async def wait(self) -> None:
        """Wait until the operation has ended."""
        if not self.scopes:
            await trio.lowlevel.checkpoint()
            return
        if self._done is None:
            self._done = trio.Event()
        await self._done.wait()

    def ended(self) -> None:
        """Wake the tasks in `wait`."""
        if self._done is not None:
            self._done.set()

    def status(self) -> OperationStatus:
        """Return a summary for people."""
        return OperationStatus(self.id, self.method, self.resource, self.started, self.session)


class OperationEntry:
    """A call within its operation: a context manager, entered and left by the task that serves the call.

    Leaving raises MachineError: CANCELLED if the operation was cancelled by its id, TIMEOUT if `seconds` have passed.
    """

    __slots__ = ("_operations", "operation", "scope")

    def __init__(self, operations: Operations, operation: Operation, seconds: float) -> None:
        self._operations = operations
        self.operation = operation
        self.scope = trio.CancelScope(
            deadline=trio.current_time() + seconds
        )  # cancelled by others, too: see `host.use`

    def __enter__(self) -> Operation:
        self._operations.add(self.operation, self.scope)
        self.scope.__enter__()
        return self.operation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._operations.remove(self.operation, self.scope)
        self.scope.__exit__(kind, error, traceback)
        if self.scope.cancelled_caught:
            if self.operation.cancelled:
                raise MachineError(f"operation {self.operation.id} was cancelled", kind=ErrorKind.CANCELLED)
            raise MachineError(f"{self.operation.method} took longer than the server allows", kind=ErrorKind.TIMEOUT)


class Operations:
    """All operations of a machine."""

    def __init__(self) -> None:
        self._running: dict[str, Operation] = {}

    def enter(
        self,
        method: str,
        *,
        resource: str = "",
        session: str = "",
        opid: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        seconds: float,
    ) -> OperationEntry:
        """Return a context manager for a call, which joins the operation `opid` if that is running.

        Raises MachineError (INVALID) if `opid` is not a UUID.
        """
        if opid is None:
            return OperationEntry(self, Operation(_new_id(), method, resource, session, arguments), seconds)
        try:
            opid = str(uuid.UUID(opid))
        except ValueError:
            raise MachineError(
                f"{OPERATION_KEY} {opid[:64]!r} is not an operation id",
                kind=ErrorKind.INVALID,
                remedy="send a UUID, or omit it",
            ) from None
        operation = self._running.get(opid) or Operation(opid, method, resource, session, arguments)
        return OperationEntry(self, operation, seconds)

    def add(self, operation: Operation, scope: trio.CancelScope) -> None:
        """Add `scope` to the calls of `operation`; used by Entry."""
        self._running.setdefault(operation.id, operation)
        operation.scopes.append(scope)
        if operation.cancelled:
            scope.cancel()

    def remove(self, operation: Operation, scope: trio.CancelScope) -> None:
        """Undo `add`; used by Entry."""
        operation.scopes.remove(scope)
        if not operation.scopes:
            if self._running.get(operation.id) is operation:
                del self._running[operation.id]
            operation.ended()

    def find(self, opid: str) -> Operation:
        """Return the running operation with this id; raises MachineError (NOT_FOUND) if there is none."""
        try:
            return self._running[opid]
        except KeyError:
            raise MachineError(
                f"no operation {opid[:64]!r} is running",
                kind=ErrorKind.NOT_FOUND,
                remedy="it may have ended already; GetOperations lists those that run",
            ) from None

    def running(self, *, excluding: Operation | None = None) -> list[Operation]:
        """Return the operations in progress except `excluding`, oldest first."""
        return [operation for operation in self._running.values() if operation is not excluding]

    def cancel_all(self, *, excluding: Operation | None = None) -> None:
        """Cancel all operations except `excluding`."""
        for operation in self.running(excluding=excluding):
            operation.cancel()
