"""Metrics and spans: their types, and the formats in which they are written and exported.

Public, in the order in which to read them:

* `exposition`: Metrics in the text formats that Prometheus and OpenMetrics scrapers read
* `ftdc`: Full-time diagnostic data capture (FTDC): encoder and decoder for the file format of the reference server
* `spans`: Spans: timed operations with their position in a trace
* `loop`: How long the event loop runs without a pause, as metrics of the process
* `otlp`: Spans and metrics in the JSON of the OpenTelemetry protocol (OTLP 1.x, "JSON Protobuf Encoding")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telemetry.metrics.exposition import Family as Family
    from telemetry.metrics.exposition import expose as expose
    from telemetry.metrics.ftdc import FtdcEncoder as FtdcEncoder
    from telemetry.metrics.ftdc import Recording as Recording
    from telemetry.metrics.ftdc import Series as Series
    from telemetry.metrics.ftdc import read_ftdc as read_ftdc
    from telemetry.metrics.loop import loop_passes as loop_passes
    from telemetry.metrics.otlp import metrics_request as metrics_request
    from telemetry.metrics.otlp import spans_request as spans_request
    from telemetry.metrics.spans import Span as Span
    from telemetry.metrics.spans import parse_traceparent as parse_traceparent
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "exposition": ["Family", "expose"],
            "ftdc": ["FtdcEncoder", "Recording", "Series", "read_ftdc"],
            "spans": ["Span", "parse_traceparent"],
            "loop": ["loop_passes"],
            "otlp": ["metrics_request", "spans_request"],
        },
    )
