"""Metadata, time limits and error details as header fields. Encoding of values is grpclib's."""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import trio
from grpclib.const import Status
from grpclib.encoding.proto import ProtoStatusDetailsCodec
from grpclib.exceptions import GRPCError
from grpclib.metadata import Deadline, decode_bin_value, encode_bin_value, encode_grpc_message, encode_metadata
from multidict import MultiDict

from rpc.carrier import Headers, MutableHeaders

Metadata: TypeAlias = "MultiDict[str | bytes]"
MetadataLike: TypeAlias = "Mapping[str, str | bytes] | Collection[tuple[str, str | bytes]]"

DETAILS_KEY: Final = "grpc-status-details-bin"
ACCEPT_ENCODING: Final = ("grpc-accept-encoding", "identity,gzip")

_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])\Z")
_RESERVED: Final = frozenset({"te", "content-type", "user-agent"})


class CallDeadline(Deadline):  # type: ignore[misc]
    """A point on Trio's clock that passes for grpclib's Deadline."""

    def __init__(self, at: float) -> None:
        super().__init__(_timestamp=at)
        self.at = at

    def time_remaining(self) -> float:
        """Seconds left; zero when it has passed."""
        return max(0.0, self.at - trio.current_time())


def decode_timeout(value: str) -> float:
    """Seconds that `grpc-timeout` allows; ValueError unless it is up to 8 digits and a unit."""
    match = _TIMEOUT.match(value)
    if match is None:
        raise ValueError(f"grpc-timeout {value[:20]!r} is not up to 8 digits and one of H M S m u n")
    return int(match[1]) * _UNITS[match[2]]


def encode_timeout(seconds: float) -> str:
    """`seconds` as `grpc-timeout`: at most 8 digits, rounded down, at least a nanosecond."""
    for unit in "numSM":
        count = int(seconds / _UNITS[unit])
        if count < 10**8:
            return f"{max(count, 1)}{unit}"
    return f"{min(int(seconds / 3600), 10**8 - 1)}H"


def decode(headers: Headers) -> Metadata:
    """Custom metadata among `headers`; values of `-bin` keys are bytes. GRPCError for base64 that is none."""
    metadata: Metadata = MultiDict()
    for key, value in headers:
        if key[0] == ":" or key in _RESERVED or key.startswith("grpc-"):
            continue
        if key.endswith("-bin"):
            try:
                for part in value.split(","):  # a list of values may have been joined on the way
                    metadata.add(key, decode_bin_value(part.strip().encode("ascii")))
            except (binascii.Error, UnicodeEncodeError) as error:
                raise GRPCError(Status.INVALID_ARGUMENT, f"the value of metadata {key!r} is not base64") from error
        else:
            metadata.add(key, value)
    return metadata


def encode(metadata: MetadataLike | None) -> MutableHeaders:
    """Metadata as header fields. ValueError or TypeError for a key or value that cannot be sent."""
    return list(encode_metadata(metadata)) if metadata else []


def encode_outcome(message: str | None, details: Any, status: Status) -> MutableHeaders:
    """`grpc-message` and `grpc-status-details-bin`, as far as there are any."""
    headers: MutableHeaders = []
    if message:
        headers.append(("grpc-message", encode_grpc_message(message)))
    if details is not None:
        encoded = ProtoStatusDetailsCodec().encode(status, message, details)
        headers.append((DETAILS_KEY, encode_bin_value(encoded).decode("ascii")))
    return headers


def decode_details(status: Status, message: str | None, value: str | None) -> Any:
    """The protobuf messages of `grpc-status-details-bin`; None without it or if it cannot be read."""
    if value is None:
        return None
    from google.protobuf.message import DecodeError

    try:
        return ProtoStatusDetailsCodec().decode(status, message, decode_bin_value(value.encode("ascii")))
    except (DecodeError, binascii.Error, UnicodeEncodeError):
        return None
