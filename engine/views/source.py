"""The interface that pages use to access a machine, and the plain data that they show.

`runtime.server.pages.view` answers for the real one; a test answers with a small machine in memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from engine.views.status import MachineStatus

LEVELS = ("debug", "info", "warn", "error")
"""Log levels, from most to least verbose."""


@dataclass(frozen=True, slots=True)
class Field:
    """An input field of a form."""

    name: str
    control: str = "text"  # number, integer, text, choice or json
    optional: bool = False
    hint: str = ""  # unit, or type if it has no unit
    default: str = ""
    choices: tuple[str, ...] = ()
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a resource, with the fields of its form."""

    name: str
    summary: str = ""  # first sentence of its documentation
    detail: str = ""  # the rest
    fields: tuple[Field, ...] = ()
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """A log entry; `resource` is a full name or empty."""

    seq: int
    time: datetime
    level: str
    logger: str
    message: str
    resource: str = ""
    fields: str = ""  # a JSON object
    caller: str = ""  # file and line


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image."""

    data: bytes
    mime_type: str


class PageSource(Protocol):
    """A machine, as used by pages. Methods that are not coroutines return immediately."""

    def status(self) -> MachineStatus:
        """Return the current status."""

    def changes(self) -> Sequence[AsyncIterator[object]]:
        """Return iterators that yield when the status may have changed; slow readers skip changes, but not the last."""

    def module_server(self) -> str:
        """Return ip:port of the server for modules; empty if there is none."""

    async def statistics(self, start: int, end: int, points: int) -> dict[str, Any]:
        """Return the machine's own statistics between two times; see engine.metrics.history."""

    async def ask_maintenance(self) -> None:
        """Decide again whether a restart is allowed now; takes at most a few seconds."""

    def attributes(self, name: str) -> Mapping[str, Any] | None:
        """Return the configured attributes of a resource with secrets masked; None if there are none."""

    def methods(self, name: str) -> Sequence[Method]:
        """Return the methods of a resource, in any state."""

    def is_actuator(self, name: str) -> bool:
        """Return whether a resource can be stopped."""

    async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
        """Call a method with arguments as a person typed them; raises MachineError. Cancelling cancels the call."""

    async def picture(self, name: str) -> Picture:
        """Return the newest image of a camera; raises MachineError."""

    async def stop_all(self) -> None:
        """Stop all actuators; raises MachineError that lists those that could not be stopped."""

    def logs(self, since: int = 0) -> Sequence[ShownEntry]:
        """Return the stored entries with a number above `since`, oldest first."""

    def log_changes(self, since: int) -> AsyncGenerator[object, None]:
        """Yield when there are entries above `since`; slow readers skip changes, but not the last."""
