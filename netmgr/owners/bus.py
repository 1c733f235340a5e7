"""Calls on the system's D-Bus, with errors for people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import trio

from schema import ErrorKind, MachineError
from support import unwrap

PROPERTIES: Final = "org.freedesktop.DBus.Properties"
CALL_LIMIT: Final = 10.0  # seconds; half of that of libdbus, because programs here answer from memory
_ABSENT: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("ServiceUnknown", "NameHasNoOwner", "UnknownObject")
)


class BusError(MachineError):
    """Error that a program on the bus has returned. `name` is that of D-Bus."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name

    @property
    def absent(self) -> bool:
        """The program does not run, or does not know the object."""
        return self.name in _ABSENT


class Bus(Protocol):
    """Connection to a bus."""

    async def call(
        self, service: str, path: str, interface: str, method: str, signature: str = "", *arguments: object
    ) -> tuple[Any, ...]:
        """Call a method; return the values of the reply. Raises BusError, and UNAVAILABLE after CALL_LIMIT."""
        ...


class _SystemBus:
    def __init__(self, router: Any) -> None:
        self._router = router

    async def call(
        self, service: str, path: str, interface: str, method: str, signature: str = "", *arguments: object
    ) -> tuple[Any, ...]:
        from jeepney import DBusAddress, MessageFlag, MessageType, new_method_call

        address = DBusAddress(path, bus_name=service, interface=interface)
        message = new_method_call(address, method, signature or None, arguments)
        message.header.flags |= MessageFlag.no_auto_start  # what does not run does not manage anything
        try:
            with trio.fail_after(CALL_LIMIT):
                reply = await self._router.send_and_get_reply(message)
        except trio.TooSlowError:
            raise MachineError(
                f"{service} has not answered within {CALL_LIMIT:g} s", kind=ErrorKind.UNAVAILABLE
            ) from None
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.EndOfChannel):
            raise MachineError("the system's D-Bus has closed the connection", kind=ErrorKind.UNAVAILABLE) from None
        if reply.header.message_type is MessageType.error:
            name = str(next(iter(value for field, value in reply.header.fields.items() if int(field) == 4), ""))
            raise BusError(name, f"{service} refuses {method}: {reply.body[0] if reply.body else name}")
        return tuple(reply.body)


@asynccontextmanager
async def system_bus() -> AsyncIterator[Bus]:
    """Connect to the system's bus while the context is open. Raises MachineError (UNAVAILABLE) if there is none."""
    from jeepney.io.trio import open_dbus_connection

    try:
        with trio.fail_after(CALL_LIMIT):
            connection = await open_dbus_connection("SYSTEM")
    except (OSError, trio.TooSlowError, trio.BrokenResourceError, RuntimeError) as error:
        raise MachineError(f"the system's D-Bus cannot be reached: {error}", kind=ErrorKind.UNAVAILABLE) from None
    try:
        async with connection, connection.router() as router:
            yield _SystemBus(router)
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def get(bus: Bus, service: str, path: str, interface: str, name: str) -> Any:
    """Return the value of a property."""
    ((_, value),) = await bus.call(service, path, PROPERTIES, "Get", "ss", interface, name)
    return value
