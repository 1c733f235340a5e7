"""Errors of hardware: what happened to the device, why in one of a few words, and what a person can do about it."""

from __future__ import annotations

import errno
from enum import Enum
from typing import Final

from schema.errors import ErrorKind, MachineError


class Fault(Enum):
    """Why a device did not do what it was asked; the same few words for every bus and every back end."""

    NO_ACKNOWLEDGE = "no acknowledge"  # nobody answers at that address
    BUS = "bus"  # the bus itself is stuck or garbled
    TIMEOUT = "timeout"  # it answered too late, or never
    GONE = "gone"  # it was there and has been unplugged, or it never was
    BUSY = "busy"  # somebody else owns it
    PERMISSION = "permission"  # the system does not let this user
    UNSUPPORTED = "unsupported"  # this hardware cannot do that


_KIND: Final = {
    Fault.NO_ACKNOWLEDGE: ErrorKind.UNAVAILABLE,
    Fault.BUS: ErrorKind.UNAVAILABLE,
    Fault.TIMEOUT: ErrorKind.TIMEOUT,
    Fault.GONE: ErrorKind.UNAVAILABLE,
    Fault.BUSY: ErrorKind.PRECONDITION,
    Fault.PERMISSION: ErrorKind.PERMISSION,
    Fault.UNSUPPORTED: ErrorKind.UNSUPPORTED,
}

# Errno values of Linux character devices (errno(3)); everything else is a fault of the bus.
_ERRNO: Final = {
    errno.ENXIO: Fault.NO_ACKNOWLEDGE,
    errno.EREMOTEIO: Fault.NO_ACKNOWLEDGE,
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

_REMEDY: Final = {
    Fault.NO_ACKNOWLEDGE: "check the wiring, the power and the address",
    Fault.BUS: "check the wiring; power the bus off and on if it stays",
    Fault.TIMEOUT: "check that the device is powered and not overloaded",
    Fault.GONE: "plug the device in, or correct its path",
    Fault.BUSY: "end the program that uses it",
    Fault.PERMISSION: "give the user access to the device",
    Fault.UNSUPPORTED: "choose a device that can do it",
}


class HalError(MachineError):
    """A device failed. `fault` says how, `__cause__` keeps the system's own error where there is one."""

    def __init__(self, message: str, fault: Fault, *, remedy: str = "") -> None:
        super().__init__(message, kind=_KIND[fault], remedy=remedy or _REMEDY[fault])
        self.fault = fault

    @classmethod
    def of(cls, error: OSError, what: str, *, group: str = "") -> HalError:
        """Name the system's `error` about `what` (a path, a bus); `group` is the one whose members may use it.

        Raise the result `from error`.
        """
        fault = _ERRNO.get(error.errno or 0, Fault.BUS)
        remedy = f"add the user to group {group}" if fault is Fault.PERMISSION and group else ""
        return cls(f"{what}: {error.strerror or error}", fault, remedy=remedy)
