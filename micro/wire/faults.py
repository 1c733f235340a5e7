"""The two ways in which a peer's request can fail. Pure."""

# Codes of HTTP/2, RFC 9113 section 7.
NO_ERROR = 0
PROTOCOL_ERROR = 1
FLOW_CONTROL_ERROR = 3
STREAM_CLOSED = 5
FRAME_SIZE_ERROR = 6
CANCEL = 8
COMPRESSION_ERROR = 9
ENHANCE_YOUR_CALM = 11

# Statuses of gRPC.
OK = 0
INVALID = 3
DEADLINE = 4
NOT_FOUND = 5
PERMISSION = 7
EXHAUSTED = 8
PRECONDITION = 9
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
UNAUTHENTICATED = 16


class WireFault(Exception):
    """The peer broke a rule of the wire, or a limit: the connection ends with GOAWAY and `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class CallFailure(Exception):
    """A call fails with a gRPC status; the text is for the caller."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
