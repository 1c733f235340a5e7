"""Envelopes of calls over a data channel: one protobuf message of proto.rpc.webrtc.v1 for each message of the channel.

Requests: headers, then packets, the last with `eos`; or `rst_stream`. Responses: headers, packets, trailers. Metadata
has the values that HTTP/2 header fields would have, so values of `-bin` keys are base64.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from grpclib.metadata import decode_grpc_message, encode_grpc_message

from rpc import metadata as codec
from rpc.api.messages import data_channel
from rpc.carrier import Headers, MutableHeaders
from rpc.errors import ENHANCE_YOUR_CALM, PROTOCOL_ERROR, ConnectionFault, StreamFault
from rpc.peers.port import MAX_MESSAGE

CHUNK: Final = MAX_MESSAGE - 32
"""Bytes of a message in one packet; the envelope needs up to 28 more, with the largest id of a call."""

MAX_TEXT: Final = 8 * 1024
"""Characters of a status message; a longer one is cut off, so that trailers fit into a message of the channel."""

FIELD_COST: Final = 32  # bytes that a value of metadata counts in addition to its text, as in HTTP/2

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NAME: Final = re.compile(r"[0-9a-z_.!#$%&'*+^`|~-]+\Z")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_TRANSPORT: Final = frozenset({"te", "content-type", "host", "x-forwarded-for"})
"""Fields of HTTP and its proxies, not of a call."""


def parse(kind: str, data: bytes | str) -> Any:
    """Return the Request or Response in a message of the channel. ConnectionFault if there is none."""
    if isinstance(data, str):
        raise ConnectionFault(PROTOCOL_ERROR, "frame format", "a text message on the channel for calls")
    if len(data) > MAX_MESSAGE:
        raise ConnectionFault(PROTOCOL_ERROR, "frame size", f"a message of {len(data)} bytes, more than {MAX_MESSAGE}")
    try:
        return getattr(data_channel(), kind).FromString(data)
    except Exception:  # protobuf's DecodeError, without importing protobuf here
        raise ConnectionFault(PROTOCOL_ERROR, "frame format", f"a message that is not a {kind}") from None


# Requests


def request_headers(sid: int, method: str, headers: Headers) -> bytes:
    """Encode the headers of a request; `grpc-timeout` in `headers` becomes the timeout."""
    messages = data_channel()
    envelope = messages.Request(stream=messages.Stream(id=sid))
    envelope.headers.method = method
    for name, value in headers:
        if name == "grpc-timeout":
            nanos = int(codec.decode_timeout(value) * 1e9)
            envelope.headers.timeout.seconds, envelope.headers.timeout.nanos = divmod(nanos, 10**9)
        else:
            envelope.headers.metadata.md[name].values.append(value)
    return bytes(envelope.SerializeToString())


def request_message(sid: int, data: bytes, *, last: bool, end: bool) -> bytes:
    """Encode a packet; `last` of its message, `end` with the last packet of the request."""
    messages = data_channel()
    packet = messages.PacketMessage(data=data, eom=last)
    message = messages.RequestMessage(has_message=True, packet_message=packet, eos=end)
    return bytes(messages.Request(stream=messages.Stream(id=sid), message=message).SerializeToString())


def request_end(sid: int) -> bytes:
    """Encode the end of a request whose last message was sent before."""
    messages = data_channel()
    message = messages.RequestMessage(eos=True)
    return bytes(messages.Request(stream=messages.Stream(id=sid), message=message).SerializeToString())


def request_reset(sid: int) -> bytes:
    """Encode the cancellation of a call."""
    messages = data_channel()
    return bytes(messages.Request(stream=messages.Stream(id=sid), rst_stream=True).SerializeToString())


def timeout_of(headers: Any) -> str | None:
    """Return the timeout of RequestHeaders as a value of `grpc-timeout`; None without one. A negative one is over."""
    seconds = headers.timeout.seconds + headers.timeout.nanos / 1e9
    return None if seconds == 0 else codec.encode_timeout(max(0.0, seconds))


# Responses


def response_headers(sid: int, headers: Headers) -> bytes:
    """Encode the headers of a response, with the initial metadata."""
    messages = data_channel()
    envelope = messages.Response(stream=messages.Stream(id=sid), headers=messages.ResponseHeaders())
    for name, value in headers:
        envelope.headers.metadata.md[name].values.append(value)
    return bytes(envelope.SerializeToString())


def response_message(sid: int, data: bytes, *, last: bool) -> bytes:
    """Encode a packet of a reply; `last` of its message."""
    messages = data_channel()
    message = messages.ResponseMessage(packet_message=messages.PacketMessage(data=data, eom=last))
    return bytes(messages.Response(stream=messages.Stream(id=sid), message=message).SerializeToString())


def response_trailers(sid: int, status: int, headers: Headers) -> bytes:
    """Encode the end of a response. `headers` has the status message, its details and the trailing metadata.

    What does not fit into one message of the channel is left out: details and metadata, then the end of the text. Line
    ends and other control characters become spaces: the Python SDK discards a text that has any.
    """
    messages = data_channel()
    envelope = messages.Response(stream=messages.Stream(id=sid), trailers=messages.ResponseTrailers())
    trailers = envelope.trailers
    text = ""
    for name, value in headers:
        if name == "grpc-message":
            text = _CONTROL.sub(" ", decode_grpc_message(value))
        elif name == codec.DETAILS_KEY:
            trailers.status.MergeFromString(_from_base64(value))
        else:
            trailers.metadata.md[name].values.append(value)
    trailers.status.code = status
    trailers.status.message = text
    data = bytes(envelope.SerializeToString())
    if len(data) > MAX_MESSAGE:
        only = messages.ResponseTrailers()
        only.status.code = status
        only.status.message = text[:MAX_TEXT]
        data = bytes(messages.Response(stream=messages.Stream(id=sid), trailers=only).SerializeToString())
    return data


def trailer_fields(trailers: Any) -> MutableHeaders:
    """Return the status in ResponseTrailers as HTTP/2 header fields, without metadata."""
    status = trailers.status
    fields = [("grpc-status", str(status.code))]
    if status.message:
        fields.append(("grpc-message", encode_grpc_message(status.message)))
    if status.details:
        fields.append((codec.DETAILS_KEY, base64.b64encode(status.SerializeToString()).decode("ascii")))
    return fields


# Metadata


def fields_of(metadata: Any, limit: int) -> MutableHeaders:
    """Return a Metadata message as header fields, without those of the transport.

    Raises StreamFault if they are larger than `limit` bytes, with FIELD_COST for each value, or not valid.
    """
    room = limit
    fields: MutableHeaders = []
    for key, strings in metadata.md.items():
        values = strings.values
        room -= (len(key) + FIELD_COST) * max(1, len(values))
        if room < 0:
            raise _too_large(limit)
        name = key.lower()
        if not _NAME.match(name):
            raise StreamFault(PROTOCOL_ERROR, "header fields", f"metadata has a key {key[:40]!r} that is not valid")
        kept = name not in _TRANSPORT and (name == "grpc-timeout" or name[:5] != "grpc-")
        for value in values:
            room -= len(value)
            if room < 0:
                raise _too_large(limit)
            if not _VALUE.match(value):
                raise StreamFault(PROTOCOL_ERROR, "header fields", f"metadata {name!r} has a value that is not text")
            if kept:
                fields.append((name, value))
    return fields


def _too_large(limit: int) -> StreamFault:
    text = f"metadata is larger than the limit of {limit} bytes; send less"
    return StreamFault(ENHANCE_YOUR_CALM, "header list size", text)


def _from_base64(value: str) -> bytes:
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4))
    except binascii.Error:
        return b""
