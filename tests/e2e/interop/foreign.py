"""Other implementations of gRPC, in a separate process because they run on asyncio.

`python -m tests.e2e.interop.foreign serve grpclib|grpcio` prints its port and serves until killed.
`python -m tests.e2e.interop.foreign call grpclib|grpcio PORT` makes calls of every kind and prints the results as
JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from tests.unit.rpc.echo import PATH, Stub

BIG = 3_000_000  # bytes; larger than every initial window


async def _collect_error(awaitable: Any) -> list[object]:
    try:
        await awaitable
    except Exception as error:
        status: Any = error.status if hasattr(error, "status") else error.code()  # type: ignore[attr-defined]
        text = error.message if hasattr(error, "message") else error.details()  # type: ignore[attr-defined]
        return [status.name, text]
    return ["OK", ""]


async def _timed_out(awaitable: Any) -> str:
    """Return how a call timed out: grpclib raises TimeoutError or the server's status, grpcio its own error."""
    try:
        await awaitable
    except TimeoutError:
        return "DEADLINE"
    except Exception as error:
        return "DEADLINE" if "DEADLINE" in repr(error) else repr(error)
    return "nothing"


async def call_grpclib(port: int) -> dict[str, object]:
    from grpclib.client import Channel

    async with Channel("127.0.0.1", port) as channel:
        stub = Stub(channel)
        return {
            "echo": (await stub.Echo(Request(host="hello"))).valid_host,
            "big": len((await stub.Echo(Request(host="x" * BIG))).valid_host),
            "many": len(await stub.Many(Request(host="300,1000"))),
            "collect": (await stub.Collect([Request(host="abc")] * 100)).valid_host,
            "bidi": [reply.valid_host for reply in await stub.Bidi([Request(host=str(n)) for n in range(50)])],
            "fail": await _collect_error(stub.Fail(Request(host="grpc"))),
            "missing": await _collect_error(stub.Missing(Request())),
            "deadline": await _timed_out(stub.Hang(Request(), timeout=0.2)),
            "after": (await stub.Echo(Request(host="after"))).valid_host,
        }


async def call_grpcio(port: int) -> dict[str, object]:
    import grpc

    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        codec = {"request_serializer": Request.SerializeToString, "response_deserializer": Reply.FromString}
        echo = channel.unary_unary(PATH + "Echo", **codec)
        many = channel.unary_stream(PATH + "Many", **codec)
        collect = channel.stream_unary(PATH + "Collect", **codec)
        bidi = channel.stream_stream(PATH + "Bidi", **codec)
        fail = channel.unary_unary(PATH + "Fail", **codec)
        hang = channel.unary_unary(PATH + "Hang", **codec)
        missing = channel.unary_unary(PATH + "Missing", **codec)
        squeezed = await echo(Request(host="z" * 5000), compression=grpc.Compression.Gzip)
        return {
            "echo": (await echo(Request(host="hello"))).valid_host,
            "big": len((await echo(Request(host="x" * BIG))).valid_host),
            "many": len([reply async for reply in many(Request(host="300,1000"))]),
            "collect": (await collect(iter([Request(host="abc")] * 100))).valid_host,
            "bidi": [reply.valid_host async for reply in bidi(iter([Request(host=str(n)) for n in range(50)]))],
            "fail": await _collect_error(fail(Request(host="grpc"))),
            "missing": await _collect_error(missing(Request())),
            "deadline": await _timed_out(hang(Request(), timeout=0.2)),
            "after": (await echo(Request(host="after"))).valid_host,
            "gzip": len(squeezed.valid_host),
        }


async def serve_grpclib() -> None:
    from grpclib.server import Server

    server = Server([Echo()])
    await server.start("127.0.0.1", 0)
    assert server._server is not None
    print(server._server.sockets[0].getsockname()[1], flush=True)
    await server.wait_closed()


class Echo:
    """`EchoService` on asyncio, with its Hang."""

    def __mapping__(self) -> dict[str, Any]:
        from tests.unit.rpc.echo import EchoService

        mapping = dict(EchoService().__mapping__())
        mapping[PATH + "Hang"] = mapping[PATH + "Hang"]._replace(func=self.hang)
        return mapping

    async def hang(self, stream: Any) -> None:
        await asyncio.sleep(60)


async def serve_grpcio() -> None:
    import grpc

    async def echo(request: Any, context: Any) -> Any:
        return Reply(valid_host=request.host)

    async def many(request: Any, context: Any) -> AsyncIterator[Any]:
        count, size = map(int, request.host.split(","))
        for _ in range(count):
            yield Reply(valid_host="x" * size)

    async def collect(requests: AsyncIterator[Any], context: Any) -> Any:
        return Reply(valid_host=str(sum([len(request.host) async for request in requests])))

    async def bidi(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in requests:
            yield Reply(valid_host=request.host)

    async def fail(request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.NOT_FOUND, "nö 100%\n")

    async def hang(request: Any, context: Any) -> Any:
        await asyncio.sleep(60)

    codec = {"request_deserializer": Request.FromString, "response_serializer": Reply.SerializeToString}
    handlers = {
        "Echo": grpc.unary_unary_rpc_method_handler(echo, **codec),
        "Many": grpc.unary_stream_rpc_method_handler(many, **codec),
        "Collect": grpc.stream_unary_rpc_method_handler(collect, **codec),
        "Bidi": grpc.stream_stream_rpc_method_handler(bidi, **codec),
        "Fail": grpc.unary_unary_rpc_method_handler(fail, **codec),
        "Hang": grpc.unary_unary_rpc_method_handler(hang, **codec),
    }
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(PATH.strip("/"), handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run({"grpclib": serve_grpclib, "grpcio": serve_grpcio}[sys.argv[2]]())
    else:
        call = {"grpclib": call_grpclib, "grpcio": call_grpcio}[sys.argv[2]]
        print(json.dumps(asyncio.run(call(int(sys.argv[3])))))
