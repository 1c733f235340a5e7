"""The time zone of the device, as the C library determines it: the variable TZ, otherwise /etc/localtime.

Without either it is UTC, and on Windows the zone of the system.
"""

from __future__ import annotations

import io
import os
import sys
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

if sys.platform == "win32":
    from support.clock.zone_windows import SystemZone

    _WITHOUT_FILE: Final[tzinfo] = SystemZone()
else:
    _WITHOUT_FILE: Final[tzinfo] = UTC

LOCALTIME: Final = Path("/etc/localtime")
_MAX_BYTES: Final = 1 << 20
_ONE_TYPE: Final = b"TZif2" + bytes(15) + bytes(16) + (1).to_bytes(4) + (1).to_bytes(4) + bytes(6) + b"\0"


class Zone(NamedTuple):
    """A time zone, and why it is not the one that was configured, or empty."""

    zone: tzinfo
    problem: str = ""


def device_zone(variable: str | None, localtime: Path = LOCALTIME) -> Zone:
    """Return the time zone now; UTC if none is configured, or with a problem if it cannot be used. Blocks.

    `variable` is the value of TZ, None if it is not set: a name such as `Europe/Berlin`, a path, or a POSIX rule such
    as `CET-1CEST,M3.5.0,M10.5.0/3`.
    """
    if variable is None:
        try:
            return Zone(_read(localtime))
        except FileNotFoundError:
            return Zone(_WITHOUT_FILE)
        except (OSError, ValueError) as error:
            return Zone(UTC, f"{localtime} cannot be used: {str(error)[:200]}")
    try:
        return Zone(_named(variable.removeprefix(":")))
    except (OSError, ValueError) as error:
        return Zone(UTC, f"the variable TZ cannot be used: {str(error)[:200]}")


def _named(name: str) -> tzinfo:
    if name in ("", "UTC", "UTC0"):
        return UTC
    if name.startswith("/"):
        return _read(Path(name))
    try:
        return ZoneInfo.no_cache(name)
    except (OSError, ValueError, LookupError):
        # A file without data has only the rule in its footer, which zoneinfo reads.
        return ZoneInfo.from_file(io.BytesIO(2 * _ONE_TYPE + b"\n" + os.fsencode(name) + b"\n"), key=name)


def _read(path: Path) -> tzinfo:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES)
    return ZoneInfo.from_file(io.BytesIO(data), key=str(path))
