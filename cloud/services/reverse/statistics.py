"""The statistics of a machine for a page: read from the machine itself, over the connection that it opens."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from cloud.services.common.base import Cloud
from cloud.services.reverse.opening import connection_for
from cloud.services.reverse.unary import unary
from cloud.values.author import Author
from rpc.api import SERIES
from schema import ErrorKind, MachineError

LIMIT: Final = 15.0  # seconds for the machine to answer
MOST: Final = 1 << 20  # bytes of an answer: 720 points of 9 fields have 300 kB
_POINTS: Final = 2000

Text = Annotated[str, Meta(max_length=200)]
Numbers = Annotated[list[float | None], Meta(max_length=_POINTS)]


class Last(Struct, frozen=True):
    """The newest number of a field."""

    time: float
    value: float


class Field(Struct, frozen=True):
    """A field in buckets of time."""

    name: Text
    boolean: bool
    min: Numbers
    max: Numbers
    mean: Numbers
    count: Annotated[list[int], Meta(max_length=_POINTS)]
    last: Last
    label: Text = ""


class Origin(Struct, frozen=True):
    """What has measured the fields; its names are empty, because it is the machine of the page."""

    fields: Annotated[list[Field], Meta(max_length=50)]
    machine: Text = ""
    part: Text = ""
    component: Text = ""
    method: Text = ""
    tags: Annotated[list[Text], Meta(max_length=0)] = []
    sampled: bool = False
    others: Annotated[list[Text], Meta(max_length=0)] = []


class Course(Struct, frozen=True):
    """An answer for plots, as GET /data/series gives it."""

    start: float = msgspec.field(name="from")
    end: float = msgspec.field(name="to")
    step: float
    times: Annotated[list[float], Meta(max_length=_POINTS)]
    series: Annotated[list[Origin], Meta(max_length=1)]
    sampled: bool = False
    more: bool = False


async def statistics(cloud: Cloud, author: Author, part: str, start: int, end: int, points: int) -> bytes:
    """Return the course of a part's statistics as JSON, checked: the machine may send anything.

    Times are in milliseconds since 1970. MachineError: as `connection_for` and `unary`; UNSUPPORTED for an older
    machine-server.
    """
    asked = msgspec.json.encode({"from": start, "to": end, "points": points})
    answer = await unary(await connection_for(cloud, author, part), SERIES, asked, LIMIT)
    try:
        if len(answer) > MOST:
            raise msgspec.MsgspecError(f"over {MOST} bytes")
        return msgspec.json.encode(msgspec.json.decode(answer, type=Course))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MachineError(
            f"the answer of the machine cannot be used: {error}",
            kind=ErrorKind.INTERNAL,
            remedy="update machine-server on it",
        ) from None
