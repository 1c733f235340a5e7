"""Why a program failed: from its exit status, what it has used, and what it printed. Pure."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from typing import Final

from training.engine.groups import Used
from training.engine.port import MIB, Bounds
from training.engine.sandbox import FAILED, UNKEPT

_MEMORY: Final = "the program needed more memory than its limit of {memory} MiB"
_SIZE: Final = "the program wrote a file larger than the limit of {disk} MiB"
_FULL: Final = "the disk of the computer that runs the job is full"
_OWN_DISK: Final = "the program filled its disk, which has {disk} MiB and room for {files} files"
_PROCESSES: Final = "the program needed more than {processes} processes and threads"
CPU: Final = "the program used up its processor time of {cpu} s"
_SIGNALS: Final[Mapping[int, str]] = {
    152: CPU,
    153: _SIZE,
    137: "the program was killed, probably because this computer ran out of memory",
}
"""Reasons by exit status: 128 + number of the signal."""
_NO_SPACE: Final = "No space left on device"
_SIGNS: Final[Mapping[str, str]] = {
    "MemoryError": _MEMORY,
    "std::bad_alloc": _MEMORY,
    "Cannot allocate memory": _MEMORY,
    "File too large": _SIZE,
    _NO_SPACE: _FULL,
    "Resource temporarily unavailable": _PROCESSES,
    "can't start new thread": _PROCESSES,
}
"""Reasons for the failure of a program that printed one of these words."""

_UNKEPT: Final = "ERROR: the output of the program cannot be kept"  # printed by the sandbox
_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,100})'")


def reason_of(error: OSError) -> str:
    """Return why a job failed because its files could not be used, without their paths, which tenants must not see."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _FULL
    return f"the computer that runs the job cannot use its files: {error.strerror or type(error).__name__}"


class Reasons:
    """Reads the output of one program, and explains its end."""

    def __init__(
        self, bounds: Bounds, remedy: str = "add its package to requirements.txt", *, own_disk: bool = False
    ) -> None:
        self._bounds = bounds
        self._own_disk = own_disk
        self._disk = bounds.own_disk if own_disk else bounds.disk
        self._remedy = remedy  # for a missing module
        self._unkept = "the output of the program could not be kept; its log says why"
        self._sign = ""  # the reason that the output suggests, if the program fails

    def read(self, lines: Sequence[str]) -> None:
        """Remember what lines say about the reason of a failure."""
        for line in lines:
            if line.startswith(_UNKEPT):
                self._unkept = _FULL if _NO_SPACE in line else line.removeprefix("ERROR: ")
        for word, reason in _SIGNS.items():
            if any(word in line for line in lines):
                self._sign = _OWN_DISK if reason is _FULL and self._own_disk else reason
        for module in filter(None, map(_MODULE.match, lines)):
            self._sign = f"the program needs {module[1]}, which its interpreter does not have: {self._remedy}"

    def of(self, status: int, consumed: Used) -> str:
        """Return why a program with this exit status failed, "" if it did not. Statuses are those of the sandbox."""
        bounds = self._bounds
        values = {"cpu": bounds.cpu, "disk": self._disk // MIB, "memory": bounds.memory // MIB}
        if consumed.killed:
            return _MEMORY.format(**values)
        if not status:
            return ""
        if status == FAILED:
            return "the program could not be confined; its log says why"
        if status == UNKEPT:
            return self._unkept
        if status < 0:
            return f"the process around the program ended by signal {-status}"
        if reason := _SIGNALS.get(status) or self._sign or (_PROCESSES if consumed.refused else ""):
            return reason.format(processes=bounds.processes, files=bounds.files, **values)
        if status > 128:
            return f"the program was ended by signal {status - 128}"
        return f"the program failed with status {status}; its log says why"
