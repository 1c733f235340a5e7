"""A span: something that took a while, with its place in a trace. Pure; ids are those of W3C Trace Context."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# W3C Trace Context, section 3.2: version 00; ids of zeros are invalid
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(slots=True)
class Span:
    """Times are nanoseconds since 1970; `error` is empty if it went well."""

    trace: str  # 32 digits
    id: str  # 16 digits
    parent: str  # 16 digits, or empty for the first of its trace
    name: str
    start: int
    end: int = 0
    server: bool = False  # the work for a call from outside
    error: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e6


def parse_traceparent(text: object) -> tuple[str, str] | None:
    """Ids of trace and parent from a `traceparent` header; None if it is not one."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    return (found[1], found[2]) if found is not None else None
