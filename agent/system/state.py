"""What the agent remembers of the system configuration, and how it is undone. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from agent.system import journald

MANIFEST: Final = "system-files.json"
"""Manifest of the files outside of the agent's folder, in the folder of the state."""
RECORD: Final = "system.json"
"""File of the record, in the same folder."""
RESTART_JOURNALD: Final = ("systemctl", "restart", "systemd-journald.service")
FLUSH_JOURNAL: Final = ("journalctl", "--flush")
"""Moves the journal to the disk: a journald that is restarted continues in memory if the journal was there before."""


class ManagedRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Upgrades by the agent. Times are seconds since 1970, 0 if there is none."""

    succeeded: float = 0.0  # end of the last successful run
    ended: float = 0.0  # end of the last run
    outcome: str = ""  # of the last run, for people
    since: float = 0.0  # since when a run waits for maintenance
    reboot_since: float = 0.0  # since when a reboot waits for maintenance
    reboot_boot: str = ""  # id of the boot in which a reboot was requested
    reboot_file: int = 0  # time of modification of the file that required it, in nanoseconds


class SystemRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of the system that the agent has changed."""

    journald: str = ""  # hash of the drop-in file with which journald runs; empty without one
    upgrades: str = ""  # for which setting and system the upgrades are configured
    upgrade_files: dict[str, str] = {}  # the files for them: text by path
    upgrade_problems: tuple[tuple[str, str, str], ...] = ()  # path, message, remedy: repositories that are left out
    timers: dict[str, bool] = {}  # timers that were switched: whether they were enabled before
    managed: ManagedRecord = ManagedRecord()


def decode(data: bytes) -> SystemRecord | None:
    """Return a stored record, None if it is damaged."""
    try:
        return msgspec.json.decode(data, type=SystemRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def switch_timer(timer: str, enabled: bool) -> tuple[str, ...]:
    """Return the command that enables or disables a timer, now and at boot."""
    return ("systemctl", "enable" if enabled else "disable", "--now", timer)


def undo(removed: Collection[str], record: SystemRecord) -> list[tuple[str, ...]]:
    """Return the commands that bring the system back after the files `removed` were removed."""
    restart = [RESTART_JOURNALD, FLUSH_JOURNAL] if journald.PATH in removed else []
    return [*restart, *(switch_timer(timer, enabled) for timer, enabled in record.timers.items())]
