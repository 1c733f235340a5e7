"""Errors of hardware, each with a category of the cause and a remedy."""

from __future__ import annotations

import errno
from enum import Enum
from typing import Final

from schema import ErrorKind, MachineError


class Fault(Enum):
    """The cause of a hardware error; the same categories for every bus and every back end."""

    NO_ACKNOWLEDGE = "no acknowledge"  # no device answers at that address
    BUS = "bus"  # the bus itself is stuck or garbled
    TIMEOUT = "timeout"  # it answered too late, or never
    GONE = "gone"  # it was unplugged, or never existed
    BUSY = "busy"  # another program or resource uses it
    PERMISSION = "permission"  # the system denies access for this user
    UNSUPPORTED = "unsupported"  # the hardware does not support the operation


_KIND: Final = {
    Fault.NO_ACKNOWLEDGE: ErrorKind.UNAVAILABLE,
    Fault.BUS: ErrorKind.UNAVAILABLE,
    Fault.TIMEOUT: ErrorKind.TIMEOUT,
    Fault.GONE: ErrorKind.UNAVAILABLE,
    Fault.BUSY: ErrorKind.PRECONDITION,
    Fault.PERMISSION: ErrorKind.PERMISSION,
    Fault.UNSUPPORTED: ErrorKind.UNSUPPORTED,
}

# Errno values of Linux character devices (errno(3)); all others are faults of the bus.
_ERRNO: Final = {
    errno.ENXIO: Fault.NO_ACKNOWLEDGE,
    errno.ETIMEDOUT: Fault.TIMEOUT,
    errno.ENOENT: Fault.GONE,
    errno.ENODEV: Fault.GONE,
    errno.EBUSY: Fault.BUSY,
    errno.EAGAIN: Fault.BUSY,
    errno.EWOULDBLOCK: Fault.BUSY,
    errno.EACCES: Fault.PERMISSION,
    errno.EPERM: Fault.PERMISSION,
    errno.ENOTTY: Fault.UNSUPPORTED,
    errno.EINVAL: Fault.UNSUPPORTED,
    errno.EOPNOTSUPP: Fault.UNSUPPORTED,
}
if (_remote := getattr(errno, "EREMOTEIO", None)) is not None:  # only Linux has it
    _ERRNO[_remote] = Fault.NO_ACKNOWLEDGE

_REMEDY: Final = {
    Fault.NO_ACKNOWLEDGE: "check the wiring, the power and the address",
    Fault.BUS: "check the wiring; power the bus off and on if the error persists",
    Fault.TIMEOUT: "check that the device is powered and not overloaded",
    Fault.GONE: "plug the device in, or correct its path",
    Fault.BUSY: "end the program that uses it",
    Fault.PERMISSION: "give the user access to the device",
    Fault.UNSUPPORTED: "choose a device that supports it",
}


class HalError(MachineError):
    """A device failed. `fault` is the category, `__cause__` the system's own error, if any."""

    def __init__(self, message: str, fault: Fault, *, remedy: str = "") -> None:
        super().__init__(message, kind=_KIND[fault], remedy=remedy or _REMEDY[fault])
        self.fault = fault

    @classmethod
    def of(cls, error: OSError, what: str, *, group: str = "") -> HalError:
        """Create an error from the system's `error` for `what` (a path, a bus); members of `group` have access to it.

        Raise the result `from error`.
        """
        fault = _ERRNO.get(error.errno or 0, Fault.BUS)
        remedy = f"add the user to group {group}" if fault is Fault.PERMISSION and group else ""
        return cls(f"{what}: {error.strerror or error}", fault, remedy=remedy)
