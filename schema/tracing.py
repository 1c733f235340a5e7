"""Where spans of operations are written."""

from __future__ import annotations

import msgspec

from schema.section import Section


class Tracing(Section, frozen=True, kw_only=True):
    """Spans of operations."""

    enabled: bool = False
    """Record spans at all."""
    disk: bool = False
    """Write them to disk."""
    console: bool = False
    """Print them."""
    otlp_endpoint: str = msgspec.field(default="", name="otlpendpoint")
    """Send them to this OpenTelemetry collector."""
