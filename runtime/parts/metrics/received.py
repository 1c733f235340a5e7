"""Conversion of spans that modules and clients send with SendTraces, in OpenTelemetry's messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from schema import Masker
from telemetry.metrics import Span

MOST_SPANS: Final = 4096
"""Spans accepted from one request; as many as the queue for a collector holds."""

_MOST_ATTRIBUTES: Final = 64
_LONGEST: Final = 1024  # characters of a text
_MOST_TEXT: Final = 16384  # characters of all attributes of a span
_SERVER, _FAILED = "SERVER", "ERROR"  # trace.proto: last words of SpanKind and StatusCode


def spans_of(groups: Iterable[Mapping[str, Any]], *, sender: str, masker: Masker) -> Iterator[Span | None]:
    """Yield each span of ResourceSpans messages, or None for a span without valid ids. Events and links are dropped.

    Two attributes name the origin: `module` is the name of the module, `sender`, and `service.name` is what the sender
    reports. Names and attributes are masked and truncated; attributes beyond
    _MOST_ATTRIBUTES or _MOST_TEXT are dropped.
    """
    for group in groups:
        own = _attributes((group.get("resource") or {}).get("attributes") or ())
        origin = {"module": sender} if sender else {}
        if "service.name" in own:
            origin["service.name"] = str(own["service.name"])
        for scope in group.get("scope_spans") or ():
            for span in scope.get("spans") or ():
                yield _span(span, origin, masker)


def _span(message: Mapping[str, Any], origin: Mapping[str, str], masker: Masker) -> Span | None:
    trace, own = bytes(message.get("trace_id") or b""), bytes(message.get("span_id") or b"")
    parent = bytes(message.get("parent_span_id") or b"")
    if len(trace) != 16 or len(own) != 8 or len(parent) not in (0, 8) or not any(trace) or not any(own):
        return None
    status = message.get("status") or {}
    failed = str(status.get("code")).endswith(_FAILED)
    return Span(
        trace=trace.hex(),
        id=own.hex(),
        parent=parent.hex() if any(parent) else "",
        name=masker.shortened(str(message.get("name") or ""), _LONGEST),
        start=int(message.get("start_time_unix_nano") or 0),
        end=int(message.get("end_time_unix_nano") or 0),
        server=str(message.get("kind")).endswith(_SERVER),
        error=masker.shortened(str(status.get("message") or "failed"), _LONGEST) if failed else "",
        attributes=masker.value({**_attributes(message.get("attributes") or ()), **origin}),
    )


def _attributes(pairs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    size = 0
    for pair, _ in zip(pairs, range(_MOST_ATTRIBUTES), strict=False):
        key, value = _text(str(pair.get("key") or "")), _plain(pair.get("value"))
        size += len(key) + len(str(value))
        if size > _MOST_TEXT:
            break
        attributes[key] = value
    return attributes


def _plain(value: Any) -> bool | int | float | str:
    """Convert an AnyValue. Values that are not scalars, such as arrays, become text."""
    for kind, plain in (value or {}).items():
        if plain is not None:
            return plain if isinstance(plain, (bool, int, float)) and kind != "bytes_value" else _text(str(plain))
    return ""


def _text(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
