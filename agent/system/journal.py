"""Entries of the system journal, and the filter that selects which are forwarded to the cloud. Pure."""

from __future__ import annotations

import logging
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from schema import ConfigError
from support import Bucket

SETTING: Final = "agent.system_configuration.forward_system_logs"
ALL: Final = "all"
TOO_LARGE: Final = "(message larger than 4096 bytes: see journalctl on the machine)"

_END_OF_TIME: Final = 253_402_300_800  # seconds from 1970 to the year 10000
_LEVELS: Final = {
    **dict.fromkeys("0123", logging.ERROR),
    "4": logging.WARNING,
    **dict.fromkeys("56", logging.INFO),
    "7": logging.DEBUG,
}


@dataclass(frozen=True)
class JournalEntry:
    """An entry of the journal."""

    time: float  # seconds since 1970
    level: int  # of the module logging
    identifier: str  # sshd
    name: str  # sshd[812]
    message: str
    cursor: str  # where to continue after this entry; empty if the journal gave none
    unit: str = ""  # unit of systemd, sshd.service


def parse_entry(line: bytes, received: float) -> JournalEntry | None:
    """Parse a line of `journalctl -o json`; None if it is not a JSON object.

    `received`, in seconds since 1970, is the time of an entry without a valid one.
    """
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    identifier = field_text(fields.get("SYSLOG_IDENTIFIER")) or field_text(fields.get("_COMM")) or "journal"
    pid = field_text(fields.get("_PID"))
    return JournalEntry(
        time=_seconds(field_text(fields.get("__REALTIME_TIMESTAMP")), received),
        level=_LEVELS.get(field_text(fields.get("PRIORITY")), logging.INFO),
        identifier=identifier,
        name=f"{identifier}[{pid}]" if pid else identifier,
        message=TOO_LARGE if fields.get("MESSAGE", "") is None else field_text(fields.get("MESSAGE")),
        cursor=field_text(fields.get("__CURSOR")),
        unit=field_text(fields.get("_SYSTEMD_UNIT")),
    )


def field_text(value: object) -> str:
    """Return the text of a field: a text, an array of bytes, null, or an array of these (one per line)."""
    if isinstance(value, list) and not _is_bytes(value):
        return "\n".join(map(_single_text, value))
    return _single_text(value)


def _single_text(value: object) -> str:
    if isinstance(value, list):
        return bytes(value).decode(errors="replace") if _is_bytes(value) else ""
    return str(value) if isinstance(value, str | int | float) else ""


def _is_bytes(value: list[Any]) -> bool:
    return all(type(item) is int and 0 <= item <= 255 for item in value)


def _seconds(microseconds: str, received: float) -> float:
    if microseconds.isascii() and microseconds.isdecimal() and len(microseconds) <= 18:
        seconds = int(microseconds) / 1e6
        if seconds < _END_OF_TIME:
            return seconds
    return received


@dataclass(frozen=True)
class JournalFilter:
    """Selection of journal entries by their syslog identifier."""

    everything: bool = False
    included: Set[str] = frozenset()
    excluded: Set[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether any entry can be forwarded."""
        return self.everything or bool(self.included)

    def accepts(self, identifier: str) -> bool:
        """Return whether entries of `identifier` are forwarded. An exact identifier overrides `all`."""
        return identifier not in self.excluded and (self.everything or identifier in self.included)


def parse_filter(text: str, own: Set[str]) -> tuple[JournalFilter, list[ConfigError]]:
    """Parse `forward_system_logs`: identifiers to include or, after `-`, to exclude; `all` means every identifier.

    Also returns the problems; the other entries apply. The identifiers `own` are always excluded: their log reaches the
    cloud directly.
    """
    if not text.strip():
        return JournalFilter(), []
    included: set[str] = set()
    excluded: set[str] = set()
    problems: list[ConfigError] = []

    def problem(reason: str, remedy: str) -> None:
        problems.append(ConfigError(SETTING, reason, value=text, remedy=remedy))

    for entry in map(str.strip, text.split(",")):
        name = entry.removeprefix("-").strip()
        if not name:
            problem(f"an entry is {entry!r}: expected the identifier of a program", "remove the extra comma or '-'")
        else:
            (excluded if entry.startswith("-") else included).add(name)
    for name in sorted(included & excluded):
        problem(f"{name!r} is both included and excluded: it is not forwarded", f"remove '{name}' or '-{name}'")
    for name in sorted(included & own):
        problem(f"{name!r} is never forwarded: its log reaches the cloud directly", f"remove '{name}'")
    included -= excluded | own
    if not included and not problems:
        problem("nothing is included: nothing is forwarded", "add 'all' or the identifiers to forward")
    selected = JournalFilter(
        everything=ALL in included,
        included=frozenset(included - {ALL}),
        excluded=frozenset(excluded - {ALL} | own),
    )
    return selected, problems


class Position(msgspec.Struct, frozen=True):
    """The entry up to which the journal was forwarded."""

    cursor: str
    time: float  # of this entry, in seconds since 1970


FIELDS: Final = ("MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "_COMM", "_PID", "_SYSTEMD_UNIT")
_OUTPUT: Final = ("journalctl", "--output=json", f"--output-fields={','.join(FIELDS)}", "--no-pager", "--quiet")
LAST_ENTRY: Final = (*_OUTPUT, "--lines=1")
"""Command that prints the newest entry."""


def follow_command(position: Position | None, *, by_time: bool) -> tuple[str, ...]:
    """Return the command that prints all entries after `position`, and new ones as they come; None: all entries.

    With `by_time`, the time counts and not the cursor; then the entry of the position is printed again.
    """
    if position is None:
        place: tuple[str, ...] = ()
    elif by_time:
        place = (f"--since=@{position.time:.6f}",)
    else:
        place = (f"--after-cursor={position.cursor}",)
    return (*_OUTPUT, "--follow", "--no-tail", *place)


class EntryLimit:
    """Limits entries to RATE a second, by the times of the entries: what has piled up is not lost.

    The same entries are dropped when they are read again.
    """

    RATE: Final = 100

    def __init__(self) -> None:
        self.dropped = 0
        """Entries that were dropped since `report`."""
        self._bucket = Bucket(burst=self.RATE, rate=self.RATE)
        self._clock = self._last = 0.0
        self._since = 0.0  # when the first of them was dropped

    def admit(self, time: float) -> bool:
        """Return whether an entry of this time may pass. A clock that was set back only makes it slower."""
        self._clock += max(0.0, time - self._last)
        self._last = time
        if self._bucket.take(self._clock):
            return True
        self._since = self._since if self.dropped else self._clock
        self.dropped += 1
        return False

    def report(self, *, now: bool) -> str:
        """Return a message about dropped entries and begin to count again; empty if there are none.

        Without `now`, entries are counted for a second, so that a flood does not lead to a flood of messages.
        """
        if not self.dropped or (not now and self._clock - self._since < 1.0):
            return ""
        count, self.dropped = self.dropped, 0
        entries = "1 entry of the journal was" if count == 1 else f"{count} entries of the journal were"
        return f"{entries} dropped: more than {self.RATE} in a second"


class JournalLines:
    """Cuts a stream into lines of at most `longest` bytes; a longer line becomes None."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = b""
        self._skipping = False

    def cut(self, data: bytes) -> list[bytes | None]:
        """Return the lines that `data` completes."""
        lines: list[bytes | None] = []
        *ends, self._rest = (self._rest + data).split(b"\n")
        for line in ends:
            lines.append(None if self._skipping or len(line) > self._longest else line)
            self._skipping = False
        if len(self._rest) > self._longest:
            self._rest, self._skipping = b"", True
        return lines
