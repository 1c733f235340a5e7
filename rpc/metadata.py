"""Header field encoding of metadata, timeouts and error details. Values are encoded by grpclib."""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.metadata import decode_bin_value, encode_bin_value, encode_grpc_message, encode_metadata
from multidict import MultiDict

if TYPE_CHECKING:
    from rpc.carrier import Headers, MutableHeaders

Metadata: TypeAlias = "MultiDict[str | bytes]"
MetadataLike: TypeAlias = "Mapping[str, str | bytes] | Collection[tuple[str, str | bytes]]"

DETAILS_KEY: Final = "grpc-status-details-bin"
COMPRESSIONS: Final = ("deflate", "gzip")  # in which messages are accepted; deflate means the format of zlib
ACCEPT_ENCODING: Final = ("grpc-accept-encoding", ",".join(("identity", *COMPRESSIONS)))

_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])\Z")
_NAME: Final = re.compile(r"(?!grpc-|(?:te|content-type|user-agent)\Z|.*-bin\Z)[0-9a-z_.\-]+\Z")
_TEXT: Final = re.compile(r"[ -~]+\Z")
_RESERVED: Final = frozenset({"te", "content-type", "user-agent"})


def decode_timeout(value: str) -> float:
    """Return the seconds of a `grpc-timeout` value; ValueError unless it is up to 8 digits and a unit."""
    match = _TIMEOUT.match(value)
    if match is None:
        raise ValueError(f"grpc-timeout {value[:20]!r} is not up to 8 digits and one of H M S m u n")
    return int(match[1]) * _UNITS[match[2]]


def encode_timeout(seconds: float) -> str:
    """Format `seconds` as `grpc-timeout`: at most 8 digits, rounded down, at least one nanosecond."""
    for unit in "numSM":
        count = int(seconds / _UNITS[unit])
        if count < 10**8:
            return f"{max(count, 1)}{unit}"
    return f"{min(int(seconds / 3600), 10**8 - 1)}H"


def decode(headers: Headers) -> Metadata:
    """Return the custom metadata in `headers`; values of `-bin` keys are bytes. GRPCError for invalid base64."""
    metadata: Metadata = MultiDict()
    for key, value in headers:
        if key[0] == ":" or key in _RESERVED or key.startswith("grpc-"):
            continue
        if key.endswith("-bin"):
            try:
                for part in value.split(","):  # an intermediary may have joined a list of values
                    metadata.add(key, decode_bin_value(part.strip().encode("ascii")))
            except (binascii.Error, UnicodeEncodeError) as error:
                raise GRPCError(Status.INVALID_ARGUMENT, f"the value of metadata {key!r} is not base64") from error
        else:
            metadata.add(key, value)
    return metadata


def encode(metadata: MetadataLike | None) -> MutableHeaders:
    """Encode metadata as header fields. ValueError or TypeError for a key or value that cannot be sent."""
    headers: MutableHeaders = []
    if metadata:
        for key, value in metadata.items() if hasattr(metadata, "items") else metadata:
            # Most values are short texts, which this checks as grpclib does, in a fifth of the time.
            if type(value) is str and _NAME.match(key) and _TEXT.match(value):
                headers.append((key, value))
            else:
                headers += encode_metadata([(key, value)])
    return headers


def encode_outcome(message: str | None, details: Any, status: Status) -> MutableHeaders:
    """Return the header fields `grpc-message` and `grpc-status-details-bin`, without absent ones."""
    headers: MutableHeaders = []
    if message:
        headers.append(("grpc-message", encode_grpc_message(message)))
    if details is not None:
        from grpclib.encoding.proto import ProtoStatusDetailsCodec  # imports asyncio, and is rarely needed

        encoded = ProtoStatusDetailsCodec().encode(status, message, details)
        headers.append((DETAILS_KEY, encode_bin_value(encoded).decode("ascii")))
    return headers


def decode_details(status: Status, message: str | None, value: str | None) -> Any:
    """Decode the protobuf messages of `grpc-status-details-bin`; None if `value` is None or cannot be decoded."""
    if value is None:
        return None
    from google.protobuf.message import DecodeError
    from grpclib.encoding.proto import ProtoStatusDetailsCodec

    try:
        return ProtoStatusDetailsCodec().decode(status, message, decode_bin_value(value.encode("ascii")))
    except (DecodeError, binascii.Error, UnicodeEncodeError):
        return None
