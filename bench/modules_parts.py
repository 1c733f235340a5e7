"""The other processes of `bench.modules`: a module on the official SDK, and a minimal proxy on grpcio.aio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any


def module() -> None:
    """Run a module with two models that answer DoCommand: one of an API that machine-server knows, one of another."""
    from viam.components.generic import Generic
    from viam.module.module import Module
    from viam.resource.easy_resource import EasyResource
    from viam.services.slam import SLAM

    async def do_command(self: Any, command: Mapping[str, Any], **kwargs: Any) -> Mapping[str, Any]:
        return command

    class BuiltIn(Generic, EasyResource):
        MODEL = "bench:module:known"

    class Unknown(SLAM, EasyResource):
        MODEL = "bench:module:unknown"

    for cls in (BuiltIn, Unknown):
        cls.do_command = do_command
        cls.__abstractmethods__ = frozenset()
    asyncio.run(Module.run_from_registry())


def proxy(target: str) -> None:
    """Forward every unary call, as bytes, to `target`: the minimum for a proxy on grpcio.aio."""
    import grpc.aio

    class Forward(grpc.GenericRpcHandler):  # type: ignore[misc]
        def __init__(self, channel: Any) -> None:
            self.channel = channel

        def service(self, details: Any) -> Any:
            call = self.channel.unary_unary(details.method)

            async def forward(request: bytes, context: Any) -> bytes:
                answer: bytes = await call(request, timeout=context.time_remaining())
                return answer

            return grpc.unary_unary_rpc_method_handler(forward)

    async def main() -> None:
        async with grpc.aio.insecure_channel(target) as channel:
            server = grpc.aio.server()
            server.add_generic_rpc_handlers((Forward(channel),))
            print(server.add_insecure_port("127.0.0.1:0"), flush=True)
            await server.start()
            await server.wait_for_termination()

    asyncio.run(main())


if __name__ == "__main__":
    module() if sys.argv[1].startswith("/") else proxy(sys.argv[1])
