"""Our server with the clients of grpclib and grpcio, our channel with their servers."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from rpc.call import ServerCore
from rpc.client.channel import Channel
from rpc.http2.server import serve_http2
from tests.e2e.interop.foreign import BIG
from tests.unit.rpc.echo import PATH, EchoService, Stub

FOREIGN = [sys.executable, "-m", "tests.e2e.interop.foreign"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grpclib", "grpcio"])
async def test_the_reference_client_calls_our_server(kind: str):
    service = EchoService()
    core = ServerCore(service.__mapping__())
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, partial(serve_http2, core=core), 0, host="127.0.0.1")
            port = (await nursery.start(serve))[0].socket.getsockname()[1]
            done = await trio.run_process([*FOREIGN, "call", kind, str(port)], capture_stdout=True)
            await service.cancelled.wait()
            nursery.cancel_scope.cancel()
    got = json.loads(done.stdout)
    squeezed = got.pop("gzip", 5000)
    assert squeezed == 5000
    assert got == {
        "echo": "hello",
        "big": BIG,
        "many": 300,
        "collect": "300",
        "bidi": [str(number) for number in range(50)],
        "fail": ["NOT_FOUND", "nö 100%\n"],
        "missing": ["UNIMPLEMENTED", f"no method {PATH}Missing"],
        "deadline": "DEADLINE",
        "after": "after",
    }
    assert not core.statistics.refusals


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grpclib", "grpcio"])
async def test_our_channel_calls_the_reference_server(kind: str):
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            start = partial(trio.run_process, [*FOREIGN, "serve", kind], stdout=subprocess.PIPE, check=False)
            process = await nursery.start(start)
            port = int(await process.stdout.receive_some())
            async with Channel(f"127.0.0.1:{port}") as channel:
                stub = Stub(channel)
                assert (await stub.Echo(Request(host="hello"))).valid_host == "hello"
                assert len((await stub.Echo(Request(host="x" * BIG))).valid_host) == BIG
                assert len(await stub.Many(Request(host="300,1000"))) == 300
                assert (await stub.Collect([Request(host="abc")] * 100)).valid_host == "300"
                texts = [str(number) for number in range(50)]
                replies = await stub.Bidi([Request(host=text) for text in texts])
                assert [reply.valid_host for reply in replies] == texts
                for method, status, timeout in (
                    (stub.Fail, Status.NOT_FOUND, None),
                    (stub.Missing, Status.UNIMPLEMENTED, None),
                    (stub.Hang, Status.DEADLINE_EXCEEDED, 0.2),
                ):
                    with pytest.raises(GRPCError) as caught:
                        await method(Request(host="grpc"), timeout=timeout)
                    assert caught.value.status is status
                assert (await stub.Echo(Request(host="after"))).valid_host == "after"
            nursery.cancel_scope.cancel()
