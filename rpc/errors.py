"""HTTP/2 error codes, protocol violations by a peer, and the reasons under which they are counted. Pure."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

# RFC 9113 section 7
NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
FLOW_CONTROL_ERROR: Final = 3
SETTINGS_TIMEOUT: Final = 4
STREAM_CLOSED: Final = 5
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
CONNECT_ERROR: Final = 10
ENHANCE_YOUR_CALM: Final = 11
INADEQUATE_SECURITY: Final = 12
HTTP_1_1_REQUIRED: Final = 13

CODE_NAMES: Final = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
)


def code_name(code: int) -> str:
    """Return the name of `code`, such as `CANCEL` for 8; `error code 77` for a code that RFC 9113 does not define."""
    return CODE_NAMES[code] if 0 <= code < len(CODE_NAMES) else f"error code {code}"


Reason: TypeAlias = Literal[
    "preface",
    "frame size",
    "frame format",
    "stream id",
    "padding",
    "settings",
    "continuation",
    "header block",
    "header list size",
    "header fields",
    "flow control",
    "streams",
    "resets",
    "pending acknowledgements",
    "useless frames",
    "message size",
    "buffered bytes",
    "slow reader",
    "handshake timeout",
    "authentication timeout",
    "idle connection",
    "keepalive timeout",
    "connections",
]
"""Reason for a refusal; key of `Statistics.refusals`."""


class ConnectionFault(Exception):
    """Violation of a rule or limit by the peer that ends the connection with GOAWAY and this code."""

    def __init__(self, code: int, reason: Reason, text: str) -> None:
        super().__init__(f"{code_name(code)}: {text}")
        self.code = code
        self.reason: Reason = reason
        self.text = text


class StreamFault(Exception):
    """Violation of a rule or limit by the peer that ends one stream with RST_STREAM and this code."""

    def __init__(self, code: int, reason: Reason, text: str) -> None:
        super().__init__(f"{code_name(code)}: {text}")
        self.code = code
        self.reason: Reason = reason
        self.text = text


class HeadersTooLarge(StreamFault):
    """Header list larger than its limit. `fields` are the fields up to the limit."""

    def __init__(self, text: str, fields: list[tuple[str, str]]) -> None:
        super().__init__(ENHANCE_YOUR_CALM, "header list size", text)
        self.fields = fields
