"""Reports about a disk that cannot be written to, with remedies."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from schema import ErrorKind, MachineError

_PERMISSION: Final = "allow the user of machine-server to write there, or set capture_dir to a folder of that user"
_SPACE: Final = "free some space, or lower disk_usage_deletion_threshold so that old captured files are deleted earlier"
_REMEDIES: Final[Mapping[int, str]] = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "the file system is read-only: mount it for writing, or set capture_dir to another one",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EEXIST: "something on that path is a file: remove it, or set capture_dir to a folder",
    errno.ENOTDIR: "something on that path is a file: remove it, or set capture_dir to a folder",
    errno.EIO: "the disk fails: read `dmesg`, copy the files from the disk and replace it",
    errno.ETIMEDOUT: "wait, or read `dmesg` and check the disk, its cable or its card",
    errno.ENOENT: "its disk may not be mounted: mount it, or set capture_dir to another folder",
    errno.EMFILE: "too many files are open: raise LimitNOFILE of the service",
}


def unusable(folder: Path, error: OSError) -> MachineError:
    """Return the error for a failed write: where, why, and what to do."""
    where = error.filename if isinstance(error.filename, str) else str(folder)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return MachineError(
        f"captured data cannot be written: {where}: {error.strerror or error}",
        kind=ErrorKind.UNAVAILABLE,
        remedy=remedy,
    )


class DiskHealth:
    """The state of the disk. Changes are logged and passed to `report`, with the reason or an empty string.

    Implements `writer.DiskReports`.
    """

    def __init__(self, folder: Path, log: structlog.stdlib.BoundLogger, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._report = report
        self._failures: dict[object, str] = {}

    @property
    def reason(self) -> str:
        """Why writing fails; empty if it works."""
        return next(iter(self._failures.values()), "")

    def refused(self, user: object, error: OSError) -> None:
        """Report that the disk has refused a write."""
        before, self._failures[user] = self.reason, str(unusable(self._folder, error))
        self._report_change(before)

    def accepted(self, user: object) -> None:
        """Report that the disk works again, or that `user` does not use it any more."""
        before = self.reason
        self._failures.pop(user, None)
        self._report_change(before)

    def _report_change(self, before: str) -> None:
        if self.reason == before:
            return
        if self.reason:
            self._log.error("capture waits for the disk", reason=self.reason)
        else:
            self._log.info("the disk accepts captured data again")
        self._report(self.reason)
