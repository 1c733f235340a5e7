"""Recording of spans of operations."""

from __future__ import annotations

import msgspec

from schema.document.section import Section


class Tracing(Section, frozen=True, kw_only=True):
    """Recording of spans of operations."""

    enabled: bool = False
    """Record spans."""
    disk: bool = False
    """Write spans to disk."""
    console: bool = False
    """Print spans."""
    otlp_endpoint: str = msgspec.field(default="", name="otlpendpoint")
    """Address of an OpenTelemetry collector to which spans are sent."""
