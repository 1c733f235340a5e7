"""`GET /data/series` and `GET /data/rows`: numbers of readings in buckets of time, as JSON.

Plots read the first, which has a list for each field. Programs that draw tables and charts of any JSON, such as
Grafana, read the second, which has an object for each number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloud.domain.data.series import MAX_POINTS, POINTS, Plotted, SourceSeries
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.web.common.site import author_of, offload, status_of
from cloud.web.views.data_view import DataQuery
from cloud.web.views.log_view import time_of
from schema import ConfigError, MachineError

_TIMES: Final = ("start", "end", "from", "to")
MILLISECONDS: Final = 9
"""Digits from which a number is a time in milliseconds: shorter ones are dates, such as 20260131."""
_CHARACTERS: Final = 20  # of a number in JSON


KEYED: Final = ("/data/series", "/data/rows", "/data/export")
"""Paths that programs may read with id and value of an API key, without a token."""


class SeriesData:
    """The endpoints. Their answers are described in docs/howto/cloud-data.md."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def series(self, request: Request) -> Response:
        """`GET /data/series` with the fields of the data page's filter, and `field`, `from`, `to` and `points`."""
        return await self._answer(request, json_of)

    async def rows(self, request: Request) -> Response:
        """`GET /data/rows` with the same fields: an array with an object for each field and bucket with numbers."""
        return await self._answer(request, rows_of)

    async def _answer(self, request: Request, form: Callable[[Plotted], Any]) -> Response:
        asked = request.query_params
        try:
            times = {name: _time(asked, name) for name in _TIMES}
            points = _points(asked.get("points", "") or str(POINTS))
            service = DataService(self._cloud, author_of(request))
            plotted = await service.tabular_series(
                DataQuery.of(asked).filter(), asked.getlist("field"), times["from"], times["to"], points
            )
        except ConfigError as error:
            said = {"error": str(error), "path": error.path, "value": error.value, "remedy": error.remedy}
            return JSONResponse(said, status_of(error))
        if plotted is None:
            if form is rows_of:
                return JSONResponse([])
            start, end = times["from"] or times["start"], times["to"] or times["end"]
            return JSONResponse({**_EMPTY, "from": _milliseconds_of(start), "to": _milliseconds_of(end)})
        size = sum(4 * len(field.mean) * _CHARACTERS for each in plotted.series for field in each.fields)
        return Response(await offload(request, size, _text(plotted, form)), media_type="application/json")


_EMPTY: Final[Mapping[str, Any]] = {"step": None, "times": [], "sampled": False, "more": False, "series": []}


def _text(plotted: Plotted, form: Callable[[Plotted], Any]) -> Callable[[], bytes]:
    return lambda: json.dumps(form(plotted), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_of(plotted: Plotted) -> dict[str, Any]:
    """Return the answer; times are in milliseconds since 1970."""
    return {
        "from": plotted.start / 1000,
        "to": plotted.end / 1000,
        "step": plotted.buckets.step / 1000,
        "times": [start / 1000 for start in plotted.buckets.starts()],
        "sampled": plotted.sampled,
        "more": plotted.more,
        "series": [_series(each) for each in plotted.series],
    }


def rows_of(plotted: Plotted) -> list[dict[str, Any]]:
    """Return an object for each field and bucket with numbers, in the order of time; `time` is as in `json_of`."""
    rows: list[dict[str, Any]] = [
        {
            "time": start / 1000,
            "machine": each.source.machine,
            "part": each.source.part,
            "component": each.source.component,
            "method": each.source.method,
            "field": field.name,
            "mean": mean,
            "min": least,
            "max": greatest,
            "count": count,
        }
        for each in plotted.series
        for field in each.fields
        for start, mean, least, greatest, count in zip(
            plotted.buckets.starts(), field.mean, field.least, field.greatest, field.count, strict=True
        )
        if count
    ]
    rows.sort(key=lambda row: row["time"])
    return rows


def _series(series: SourceSeries) -> dict[str, Any]:
    source = series.source
    return {
        "part_id": source.part_id,
        "machine": source.machine,
        "part": source.part,
        "component": source.component,
        "type": source.component_type,
        "method": source.method,
        "tags": series.tags,
        "sampled": series.sampled,
        "others": series.others,
        "fields": [
            {
                "name": field.name,
                "boolean": field.boolean,
                "min": field.least,
                "max": field.greatest,
                "mean": field.mean,
                "count": field.count,
                "last": {"time": field.end / 1000, "value": field.last},
            }
            for field in series.fields
        ],
    }


def _time(asked: Mapping[str, str], name: str) -> datetime | None:
    """Return a time of the query, in ISO 8601 or in milliseconds since 1970. ConfigError if it is not one."""
    text = asked.get(name, "").strip()
    if text.isascii() and text.isdigit() and MILLISECONDS <= len(text) < 15:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(text))
    try:
        return time_of(text, name)
    except MachineError as error:
        raise ConfigError(name, f"{text[:40]!r} is not a time", value=text[:40], remedy=error.remedy) from None


def _points(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        remedy = f"use a number from 2 to {MAX_POINTS}"
        raise ConfigError("points", f"{text[:40]!r} is not a number", value=text[:40], remedy=remedy)
    return int(text)


def _milliseconds_of(moment: datetime | None) -> float | None:
    return None if moment is None else (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000
