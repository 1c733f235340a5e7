"""The same two methods on three gRPC servers. `python -m bench.rpc_servers KIND` runs one and prints its port.

`Echo` returns its request; `Many` streams replies, whose number and size are in its request as `count,size`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import trio
from grpclib.const import Cardinality, Handler
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

SERVICE = "bench.v1.EchoService"


async def echo(stream: Any) -> None:
    request = await stream.recv_message()
    await stream.send_message(Reply(valid_host=request.host))


async def many(stream: Any) -> None:
    request = await stream.recv_message()
    count, size = map(int, request.host.split(","))
    text = "x" * size
    for _ in range(count):
        await stream.send_message(Reply(valid_host=text))


class Echo:
    def __mapping__(self) -> dict[str, Handler]:
        return {
            f"/{SERVICE}/Echo": Handler(echo, Cardinality.UNARY_UNARY, Request, Reply),
            f"/{SERVICE}/Many": Handler(many, Cardinality.UNARY_STREAM, Request, Reply),
        }


def ready(port: int) -> None:
    print(port, flush=True)


def ours() -> None:
    from rpc.call import ServerCore
    from rpc.http2.server import serve_http2

    async def main() -> None:
        core = ServerCore(Echo().__mapping__())
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, partial(serve_http2, core=core), 0, host="127.0.0.1")
            listeners = await nursery.start(serve)
            ready(listeners[0].socket.getsockname()[1])

    trio.run(main)


def grpclib() -> None:
    from grpclib.server import Server

    async def main() -> None:
        server = Server([Echo()])
        await server.start("127.0.0.1", 0)
        assert server._server is not None
        ready(server._server.sockets[0].getsockname()[1])
        await server.wait_closed()

    asyncio.run(main())


def grpcio() -> None:
    import grpc

    async def echo_aio(request: Request, context: Any) -> Reply:
        return Reply(valid_host=request.host)

    async def many_aio(request: Request, context: Any) -> AsyncIterator[Reply]:
        count, size = map(int, request.host.split(","))
        text = "x" * size
        for _ in range(count):
            yield Reply(valid_host=text)

    async def main() -> None:
        server = grpc.aio.server()
        handlers = {
            "Echo": grpc.unary_unary_rpc_method_handler(echo_aio, Request.FromString, Reply.SerializeToString),
            "Many": grpc.unary_stream_rpc_method_handler(many_aio, Request.FromString, Reply.SerializeToString),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ready(port)
        await server.wait_for_termination()

    asyncio.run(main())


KINDS: dict[str, Callable[[], None]] = {"ours": ours, "grpclib": grpclib, "grpcio": grpcio}

if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    KINDS[sys.argv[1]]()
