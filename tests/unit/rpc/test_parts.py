from __future__ import annotations

import base64

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from hypothesis import given
from hypothesis import strategies as st

from rpc import metadata, status
from rpc.client.target import DialTarget
from rpc.http.grpc_web import TextDecoder, to_text, trailers_frame
from rpc.server.server_reflection import reflection
from schema.errors import ErrorKind
from support.rate import Bucket
from tests.unit.rpc.echo import rig


def test_every_kind_and_every_status_has_its_counterpart():
    assert set(status.STATUS_OF_KIND) == set(ErrorKind)
    assert set(status.KIND_OF_STATUS) == set(Status) - {Status.OK}
    for kind, code in status.STATUS_OF_KIND.items():
        assert status.to_machine_error(GRPCError(code, "text")).kind is kind


@given(st.floats(1e-9, 1e9))
def test_time_limits_survive_the_wire(seconds: float):
    text = metadata.encode_timeout(seconds)
    assert len(text) <= 9
    assert metadata.decode_timeout(text) == pytest.approx(seconds, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("text", ["", "S", "1", "-1S", "1 S", "123456789S", "1s", "١S", "1S\n"])
def test_bad_time_limits(text: str):
    with pytest.raises(ValueError, match="grpc-timeout"):
        metadata.decode_timeout(text)


@given(st.lists(st.binary(max_size=20), max_size=6), st.lists(st.integers(1, 9), max_size=40))
def test_text_of_grpc_web_in_any_pieces(frames: list[bytes], cuts: list[int]):
    wire = b"".join(base64.b64encode(frame) for frame in frames)
    decoder, out, position = TextDecoder(), b"", 0
    for cut in [*cuts, len(wire)]:
        out += decoder.feed(wire[position : position + cut])
        position += cut
    decoder.end()
    assert out == b"".join(frames)


def test_bad_text_of_grpc_web():
    with pytest.raises(ValueError, match="not base64"):
        TextDecoder().feed(b"!!!!")
    decoder = TextDecoder()
    decoder.feed(to_text(b"abcd")[:-1])
    with pytest.raises(ValueError, match="cut off"):
        decoder.end()


def test_trailers_frame():
    text = b"grpc-status: 5\r\ngrpc-message: no\r\n"
    assert trailers_frame(5, [("grpc-message", "no")]) == b"\x80" + len(text).to_bytes(4, "big") + text


def test_bucket():
    bucket = Bucket(3, 2.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(1.0) for _ in range(3)] == [True, True, False]
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("host:8080", DialTarget("host", 8080)),
        ("[::1]:8080", DialTarget("::1", 8080)),
        ("unix:/run/a.sock", DialTarget("localhost", 0, "/run/a.sock")),
        ("unix:///run/a.sock", DialTarget("localhost", 0, "/run/a.sock")),
        ("https://host", DialTarget("host", 443, tls=True)),
        ("http://host:81/", DialTarget("host", 81)),
    ],
)
def test_targets(text: str, target: DialTarget):
    assert DialTarget.parse(text) == target


@pytest.mark.parametrize("text", ["", "host", "unix:", "http://host/path", "host:port"])
def test_bad_targets(text: str):
    with pytest.raises(ValueError):
        DialTarget.parse(text)


def test_reflection():
    loaded: list[str] = []
    handlers = reflection(lambda: ["b.B", "a.A"], load=loaded.append)
    assert len(handlers) == 2
    answer = handlers["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"].func.__self__.answer
    names = answer(Request(list_services="")).list_services_response.service
    assert [service.name for service in names] == ["a.A", "b.B"]
    result = answer(Request(file_containing_symbol="grpc.reflection.v1.ServerReflection"))
    assert len(result.file_descriptor_response.file_descriptor_proto) == 1
    assert answer(Request(file_containing_symbol="not.There")).error_response.error_code == Status.NOT_FOUND.value
    assert loaded == ["not.There"]


async def test_draining_lets_a_call_end(autojump_clock: trio.testing.MockClock):
    async with rig() as first, trio.open_nursery() as nursery:
        replies = []

        async def upload() -> None:
            replies.append(await first.stub.Unread([Request(host="abc")]))

        nursery.start_soon(upload)
        await first.service.started.wait()
        nursery.start_soon(first.core.drain)
        await trio.testing.wait_all_tasks_blocked()
        assert not replies
        first.service.gate.set()
    assert replies[0].valid_host == "3"
    assert trio.current_time() < 1
