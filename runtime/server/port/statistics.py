"""The call with which a cloud reads the machine's own statistics, while a person looks at them there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import msgspec
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from msgspec import Meta, Struct

from rpc.api import MAX_REQUEST, Raw

MOST: Final = 1 << 53  # milliseconds: numbers of JSON are exact up to here

Series = Callable[[int, int, int], Awaitable[dict[str, Any]]]


class Asked(Struct):
    """The range, in milliseconds since 1970, and the number of points."""

    start: Annotated[int, Meta(ge=0, le=MOST)] = msgspec.field(name="from")
    end: Annotated[int, Meta(ge=0, le=MOST)] = msgspec.field(name="to")
    points: Annotated[int, Meta(ge=2, le=1_000_000)] = 720


def series_handler(series: Series) -> Handler:
    """Return the handler of `rpc.api.own.SERIES`. INVALID_ARGUMENT for a range that is not valid."""

    async def answer(stream: Any) -> None:
        message = await stream.recv_message() or b""
        try:
            asked = msgspec.json.decode(message[: MAX_REQUEST + 1], type=Asked)
        except msgspec.MsgspecError as error:
            raise GRPCError(Status.INVALID_ARGUMENT, f"the range of the statistics is not valid: {error}") from None
        if asked.start > asked.end:
            raise GRPCError(Status.INVALID_ARGUMENT, "the range of the statistics ends before it begins")
        await stream.send_message(Raw(msgspec.json.encode(await series(asked.start, asked.end, asked.points))))

    return Handler(answer, Cardinality.UNARY_UNARY, Raw, Raw)
