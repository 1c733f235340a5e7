"""A client process of `test_stopped`: makes a call with a deadline and prints the reply, or the status of the call.

Arguments: the port of the server, and the deadline in seconds.
"""

from __future__ import annotations

import sys

import trio
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from rpc.client.channel import Channel
from tests.unit.rpc.echo import Stub


async def main(port: str, limit: float) -> None:
    """Make the call."""
    async with Channel(f"127.0.0.1:{port}") as channel:
        try:
            print((await Stub(channel).Unread([Request(host="four")], timeout=limit)).valid_host)
        except GRPCError as error:
            print(error.status.name)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], float(sys.argv[2]))
