"""Mapping between the error kinds of this project, gRPC status codes and HTTP status codes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc import errors
from schema import ErrorKind, MachineError

STATUS_OF_KIND: Final[Mapping[ErrorKind, Status]] = MappingProxyType(
    {
        ErrorKind.INVALID: Status.INVALID_ARGUMENT,
        ErrorKind.NOT_FOUND: Status.NOT_FOUND,
        ErrorKind.EXISTS: Status.ALREADY_EXISTS,
        ErrorKind.PERMISSION: Status.PERMISSION_DENIED,
        ErrorKind.UNAUTHENTICATED: Status.UNAUTHENTICATED,
        ErrorKind.PRECONDITION: Status.FAILED_PRECONDITION,
        ErrorKind.EXHAUSTED: Status.RESOURCE_EXHAUSTED,
        ErrorKind.UNAVAILABLE: Status.UNAVAILABLE,
        ErrorKind.UNSUPPORTED: Status.UNIMPLEMENTED,
        ErrorKind.TIMEOUT: Status.DEADLINE_EXCEEDED,
        ErrorKind.CANCELLED: Status.CANCELLED,
        ErrorKind.INTERNAL: Status.INTERNAL,
    }
)

KIND_OF_STATUS: Final[Mapping[Status, ErrorKind]] = MappingProxyType(
    {status: kind for kind, status in STATUS_OF_KIND.items()}
    | {
        Status.UNKNOWN: ErrorKind.INTERNAL,
        Status.ABORTED: ErrorKind.UNAVAILABLE,
        Status.OUT_OF_RANGE: ErrorKind.INVALID,
        Status.DATA_LOSS: ErrorKind.INTERNAL,
    }
)
"""Error kind of every status except OK."""

# https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
_STATUS_OF_HTTP: Final[Mapping[str, Status]] = MappingProxyType(
    {
        "400": Status.INTERNAL,
        "401": Status.UNAUTHENTICATED,
        "403": Status.PERMISSION_DENIED,
        "404": Status.UNIMPLEMENTED,
        "429": Status.UNAVAILABLE,
        "502": Status.UNAVAILABLE,
        "503": Status.UNAVAILABLE,
        "504": Status.UNAVAILABLE,
    }
)

# https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors
_STATUS_OF_RESET: Final[Mapping[int, Status]] = MappingProxyType(
    {
        errors.REFUSED_STREAM: Status.UNAVAILABLE,
        errors.CANCEL: Status.CANCELLED,
        errors.ENHANCE_YOUR_CALM: Status.RESOURCE_EXHAUSTED,
        errors.INADEQUATE_SECURITY: Status.PERMISSION_DENIED,
    }
)


def of_http(status: str) -> Status:
    """Return the gRPC status for an HTTP response without gRPC status."""
    return _STATUS_OF_HTTP.get(status, Status.UNKNOWN)


def of_reset(code: int) -> Status:
    """Return the gRPC status for a stream reset with this HTTP/2 error code."""
    return _STATUS_OF_RESET.get(code, Status.INTERNAL)


def to_machine_error(error: GRPCError) -> MachineError:
    """Convert a GRPCError to a MachineError."""
    kind = KIND_OF_STATUS.get(error.status, ErrorKind.INTERNAL)
    return MachineError(error.message or error.status.name.lower().replace("_", " "), kind=kind)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Outcome of a call, as sent to the peer."""

    status: Status
    message: str | None = None
    details: Any = None  # protobuf messages for grpc-status-details-bin
    bug: bool = False  # log with traceback; the message does not describe the error


def of_exception(error: BaseException) -> CallOutcome:
    """Return the outcome of a call whose handler raised `error`.

    An exception group with a single leaf, as nurseries raise, counts as that leaf.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, GRPCError):
        return CallOutcome(error.status, error.message, error.details)
    if isinstance(error, MachineError):
        return CallOutcome(STATUS_OF_KIND[error.kind], str(error))
    return CallOutcome(Status.INTERNAL, "internal error; the log of the server has the details", bug=True)
