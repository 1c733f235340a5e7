"""Spans and metrics in the JSON of the OpenTelemetry protocol (OTLP 1.x, "JSON Protobuf Encoding"). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from telemetry.metrics.spans import Span

_INTERNAL, _SERVER = 1, 2  # trace.proto, SpanKind
_FAILED: Final = 2  # trace.proto, StatusCode
_CUMULATIVE: Final = 2  # metrics.proto, AggregationTemporality

Kind = Callable[[str], tuple[str, bool]]
"""Returns the unit of a metric, given its name, and whether it is a counter that only grows."""


def spans_request(spans: Iterable[Span], resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest; `resource` has the attributes of the source, such as `service.name`."""
    return {
        "resourceSpans": [{"resource": _resource(resource), "scopeSpans": [{"spans": [_span(span) for span in spans]}]}]
    }


def metrics_request(
    values: Mapping[str, float], *, start: int, now: int, kind: Kind, resource: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an ExportMetricsServiceRequest of a sample taken at `now`, with counters since `start` (nanoseconds)."""
    metrics = [_metric(name, value, start, now, kind(name)) for name, value in values.items() if math.isfinite(value)]
    return {"resourceMetrics": [{"resource": _resource(resource), "scopeMetrics": [{"metrics": metrics}]}]}


def _span(span: Span) -> dict[str, Any]:
    result: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": _SERVER if span.server else _INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        result["parentSpanId"] = span.parent
    if span.error:
        result["status"] = {"code": _FAILED, "message": span.error}
    return result


def _metric(name: str, value: float, start: int, now: int, kind: tuple[str, bool]) -> dict[str, Any]:
    unit, counts_up = kind
    point: dict[str, Any] = {"timeUnixNano": str(now), "asDouble": float(value)}
    if not counts_up:
        return {"name": name, "unit": unit, "gauge": {"dataPoints": [point]}}
    total = {
        "aggregationTemporality": _CUMULATIVE,
        "isMonotonic": True,
        "dataPoints": [{"startTimeUnixNano": str(start), **point}],
    }
    return {"name": name, "unit": unit, "sum": total}


def _resource(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"attributes": _attributes(attributes)}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # the JSON of protobuf writes 64-bit integers as text
    if isinstance(value, float):
        return {"doubleValue": value} if math.isfinite(value) else {"stringValue": str(value)}
    return {"stringValue": str(value)}
