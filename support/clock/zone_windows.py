"""The time zone of Windows, which has no file with it: the rules of the present are used for all years."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, tzinfo

assert sys.platform == "win32"

_EPOCH = datetime(1970, 1, 1)


class SystemZone(tzinfo):
    """Local time as the C library computes it, from 1970 on."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return the difference from UTC at a local time."""
        if moment is None:
            return None
        local = moment.replace(tzinfo=None)
        return local - (_EPOCH + timedelta(seconds=local.timestamp()))

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return None: only the difference as a whole is used."""
        return None

    def tzname(self, moment: datetime | None) -> str:
        """Return a name for logs."""
        return "local time"

    def fromutc(self, moment: datetime) -> datetime:
        """Return the local time of a moment of UTC."""
        seconds = moment.replace(tzinfo=UTC).timestamp()
        return datetime.fromtimestamp(seconds).replace(tzinfo=self)
