"""The size limit of a message for each method, applied before a handler receives it."""

from __future__ import annotations

import gzip
import struct

import pytest
import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from rpc.access.credential_types import AUTHENTICATE
from rpc.call import ServerCall, ServerCore, accept
from rpc.inbox import Budget
from rpc.limits import MAX_UNAUTHENTICATED, MIB
from rpc.turns import Flow

UPLOAD, SAVE = "/a.Data/Upload", "/a.Data/Save"


class Carrier:
    """Transmits nothing."""

    budget = Budget(96 * MIB)
    flow = Flow()

    def consumed(self, sid: int, n: int) -> None:
        """Ignore the bytes."""


def called(path: str, data: bytes) -> ServerCall:
    """Return a call of `path` with the compressed request `data`."""
    handler = Handler(lambda stream: None, Cardinality.UNARY_UNARY, Request, Request)
    core = ServerCore(dict.fromkeys((UPLOAD, SAVE, AUTHENTICATE), handler), messages={UPLOAD: 65 * MIB})
    headers = [(":method", "POST"), (":path", path), ("content-type", "application/grpc"), ("grpc-encoding", "gzip")]
    call = accept(Carrier(), 1, headers, core)  # type: ignore[arg-type]
    assert isinstance(call, ServerCall)
    packed = gzip.compress(data, 1)
    call.feed(struct.pack(">BI", 1, len(packed)) + packed, 0)
    call.end()
    return call


@pytest.mark.parametrize(("path", "size"), [(AUTHENTICATE, MAX_UNAUTHENTICATED), (SAVE, 64 * MIB), (UPLOAD, 65 * MIB)])
async def test_each_method_has_its_bound_of_a_message_once_decompressed(path: str, size: int) -> None:
    call = called(path, Request(host="x" * (size + 1)).SerializeToString())
    with pytest.raises(GRPCError) as caught:
        await call.recv_message()
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    assert f"limit of {size} bytes" in str(caught.value.message)
    assert len((await called(path, Request(host="x" * (size - 100)).SerializeToString()).recv_message()).host) > 0
    await trio.lowlevel.checkpoint()
