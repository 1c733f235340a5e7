"""Session descriptions, candidates and ICE servers in the published messages of signalling. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rpc.peers.port import Description, IceCandidate, IceServer
from schema import ErrorKind, MachineError


class _Message(msgspec.Struct):
    type: Literal["offer", "answer"]
    sdp: str


def encode_description(description: Description) -> str:
    """Return a description as signalling carries it: JSON in base64."""
    return base64.b64encode(msgspec.json.encode({"type": description.kind, "sdp": description.sdp})).decode()


def decode_description(message: bytes | str) -> Description:
    """Return the description in a message. Raises MachineError (INVALID)."""
    try:
        fields = msgspec.json.decode(base64.b64decode(message, validate=True), type=_Message)
    except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
        raise MachineError(
            "the message is not a session description in JSON and base64",
            kind=ErrorKind.INVALID,
            remedy="update the software of the other end",
        ) from None
    return Description(fields.type, fields.sdp)


def with_candidates(description: Description, candidates: Iterable[IceCandidate]) -> Description:
    """Return a description that contains these candidates and their end, for a client that takes no single ones."""
    head, *media = description.sdp.split("\r\nm=")
    for candidate in candidates:
        if candidate.text and media:
            index = candidate.line if candidate.line is not None and candidate.line < len(media) else 0
            media[index] = f"{media[index].rstrip()}\r\na={candidate.text}"
    sections = [f"{section.rstrip()}\r\na=end-of-candidates" for section in media]
    return Description(description.kind, "\r\nm=".join([head, *sections]) + "\r\n")


def candidate_of(message: Any) -> IceCandidate:
    """Return an ICECandidate message as a candidate. The Python SDK sends empty names for none."""
    return IceCandidate(
        message.candidate,
        message.sdp_mid or None,
        message.sdpm_line_index if message.HasField("sdpm_line_index") else None,
        message.username_fragment or None,
    )


def candidate_fields(candidate: IceCandidate) -> dict[str, Any]:
    """Return the fields of an ICECandidate message."""
    fields = {
        "candidate": candidate.text,
        "sdp_mid": candidate.mid,
        "sdpm_line_index": candidate.line,
        "username_fragment": candidate.fragment,
    }
    return {name: value for name, value in fields.items() if value is not None}


def servers_of(config: Any) -> tuple[IceServer, ...]:
    """Return the ICE servers in a WebRTCConfig message."""
    return tuple(
        IceServer(tuple(server.urls), server.username, server.credential) for server in config.additional_ice_servers
    )
