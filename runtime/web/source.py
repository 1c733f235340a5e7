"""What the pages ask of a machine, and the plain data they show.

`runtime.web.machine` answers for the real one; a test answers with a small machine in memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from runtime.status import MachineStatus

LEVELS = ("debug", "info", "warn", "error")
"""Log levels, quietest last."""


@dataclass(frozen=True, slots=True)
class Field:
    """One input of a form: what it is called, how it is entered and what it means."""

    name: str
    control: str = "text"  # number, integer, text, choice or json
    optional: bool = False
    hint: str = ""  # its unit, or its type if it has none
    default: str = ""
    choices: tuple[str, ...] = ()
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a resource, ready to be shown as a form."""

    name: str
    summary: str = ""  # first sentence of its documentation
    detail: str = ""  # the rest
    fields: tuple[Field, ...] = ()
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log; `resource` is a full name or empty."""

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
    """One encoded image."""

    data: bytes
    mime_type: str


class Source(Protocol):
    """One machine as the pages see it. Everything but `call`, `picture` and `stop_all` returns at once."""

    def status(self) -> MachineStatus:
        """The facts of now."""

    def changes(self) -> Sequence[AsyncIterator[object]]:
        """Each yields when the status may differ; a slow reader skips some, but never misses the last."""

    def module_server(self) -> str:
        """ip:port of the server for modules; empty if there is none."""

    async def ask_maintenance(self) -> None:
        """Decide anew whether a restart is allowed now; takes seconds at most."""

    def attributes(self, name: str) -> Mapping[str, Any] | None:
        """The configured attributes of a resource, secrets masked; None if there are none to show."""

    def methods(self, name: str) -> Sequence[Method]:
        """What can be called on a resource of this name, whatever its state."""

    def is_actuator(self, name: str) -> bool:
        """Whether it can be stopped."""

    async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
        """Call a method with arguments as a person typed them; raises MachineError. Cancelling cancels the call."""

    async def picture(self, name: str) -> Picture:
        """The newest image of a camera; raises MachineError."""

    async def stop_all(self) -> None:
        """Bring every actuator to rest; raises MachineError with what could not be stopped."""

    def logs(self, since: int = 0) -> Sequence[LogEntry]:
        """The entries that are kept with a number above `since`, oldest first."""

    def log_changes(self, since: int) -> AsyncGenerator[object, None]:
        """Yields when there are entries above `since`; a slow reader skips some, but never misses the last."""
