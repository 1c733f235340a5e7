"""Unary calls over gRPC-Web: what a server, or a proxy before it, may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from rpc.access.credential_types import AUTHENTICATE
from rpc.api import messages
from rpc.api.client import ApiClient
from rpc.client.blocking import run_blocking
from rpc.client.web import StreamingWebChannel, WebChannel
from rpc.http.grpc_web import MAX_FRAME, trailers_frame
from schema.errors import ErrorKind, MachineError

APP = "viam.app.v1.AppService"
Answer = tuple[int, Mapping[str, str], bytes]


def frame(message: Any) -> bytes:
    raw = message.SerializeToString()
    return b"\0" + len(raw).to_bytes(4, "big") + raw


ORGANIZATIONS = frame(messages.load("app.v1.app_pb2").ListOrganizationsResponse())
END = trailers_frame(0, [])
TOKEN = frame(messages.auth().AuthenticateResponse(access_token="t"))


class Answers:
    """Answers requests in turn, and records them."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str]]] = []

    async def post(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Answer:
        self.requests.append((path, dict(headers)))
        return self.answers.pop(0)


def asked(http: Answers, key: str = "") -> Any:
    return run_blocking(ApiClient(WebChannel(http, "id", key)).call(APP, "", "list_organizations"))


def test_a_call() -> None:
    http = Answers((200, {}, ORGANIZATIONS + END))
    assert asked(http) == []
    path, headers = http.requests[0]
    assert path == f"/{APP}/ListOrganizations"
    assert headers["content-type"] == "application/grpc-web+proto"
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ((200, {"grpc-status": "5", "grpc-message": "no%20such"}, b""), ErrorKind.NOT_FOUND, "no such"),
        ((200, {}, trailers_frame(9, [("grpc-message", "first%3A do")])), ErrorKind.PRECONDITION, "first: do"),
        ((502, {}, b"<html>"), ErrorKind.UNAVAILABLE, "HTTP status 502"),
        ((200, {}, ORGANIZATIONS), ErrorKind.UNAVAILABLE, "cut off"),
        ((200, {}, (ORGANIZATIONS + END)[:-1]), ErrorKind.UNAVAILABLE, "not complete"),
        ((200, {}, b"\0\0"), ErrorKind.UNAVAILABLE, "not complete"),
        ((200, {}, b"<html>not grpc</html>"), ErrorKind.UNAVAILABLE, "not one of gRPC-Web"),
        ((200, {}, END), ErrorKind.INTERNAL, "0 messages"),
        ((200, {}, ORGANIZATIONS * 2 + END), ErrorKind.INTERNAL, "2 messages"),
        ((200, {}, b"\0\0\0\0\2\xff\xff" + END), ErrorKind.INTERNAL, "ListOrganizationsResponse"),
        ((200, {"grpc-status": "x", "grpc-message": "odd"}, b""), ErrorKind.INTERNAL, "odd"),
    ],
)
def test_other_answers(answer: Answer, kind: ErrorKind, text: str) -> None:
    with pytest.raises(MachineError, match=text) as caught:
        asked(Answers(answer))
    assert caught.value.kind is kind


def test_the_first_call_signs_in_and_later_ones_use_the_token() -> None:
    http = Answers((200, {}, TOKEN + END), (200, {}, ORGANIZATIONS + END), (200, {}, ORGANIZATIONS + END))
    client = ApiClient(WebChannel(http, "id", "key"))
    for _ in range(2):
        run_blocking(client.call(APP, "", "list_organizations"))
    assert [path for path, _ in http.requests] == [AUTHENTICATE, *[f"/{APP}/ListOrganizations"] * 2]
    assert http.requests[1][1]["authorization"] == http.requests[2][1]["authorization"] == "Bearer t"


def test_a_rejected_token_is_replaced_once() -> None:
    rejected = (200, {"grpc-status": "16", "grpc-message": "expired"}, b"")
    http = Answers((200, {}, TOKEN + END), rejected, (200, {}, TOKEN + END), (200, {}, ORGANIZATIONS + END))
    assert asked(http, "key") == []
    with pytest.raises(MachineError, match="expired"):
        asked(Answers((200, {}, TOKEN + END), rejected, (200, {}, TOKEN + END), rejected), "key")


def test_streams_are_refused() -> None:
    async def first() -> Any:
        return await anext(ApiClient(WebChannel(Answers())).stream(APP, "", "tail_robot_part_logs", id="x"))

    with pytest.raises(MachineError, match="is a stream") as caught:
        run_blocking(first())
    assert caught.value.kind is ErrorKind.UNSUPPORTED


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(WebChannel(Answers(), "id", "secret"))


LOGS = frame(messages.load("app.v1.app_pb2").TailRobotPartLogsResponse())


class Streams(Answers):
    """Also answers requests in parts of `size` bytes."""

    size = 1

    async def open(
        self, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Mapping[str, str], AsyncIterator[bytes]]:
        code, fields, content = await self.post(path, headers, body)
        return code, fields, self._parts(content)

    async def _parts(self, content: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(content), self.size):
            yield content[start : start + self.size]


def followed(http: Streams, results: list[Any], key: str = "") -> None:
    async def follow() -> None:
        async for result in ApiClient(StreamingWebChannel(http, "id", key)).stream(
            APP, "", "tail_robot_part_logs", id="x"
        ):
            results.append(result)  # noqa: PERF401 - the results before an error count

    run_blocking(follow())


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_results_arrive_in_parts_of_any_size(size: int) -> None:
    results: list[Any] = []
    http = Streams((200, {}, TOKEN + END), (200, {}, LOGS * 3 + END))
    http.size = size
    followed(http, results, "key")
    assert results == [[], [], []]
    assert http.requests[1][1]["authorization"] == "Bearer t"


def test_a_stream_signs_in_again_after_a_rejected_token() -> None:
    results: list[Any] = []
    rejected = (200, {"grpc-status": "16", "grpc-message": "expired"}, b"")
    followed(Streams((200, {}, TOKEN + END), rejected, (200, {}, TOKEN + END), (200, {}, LOGS + END)), results, "key")
    assert results == [[]]


@pytest.mark.parametrize(
    ("content", "count", "kind", "text"),
    [
        (LOGS + trailers_frame(9, [("grpc-message", "no more")]), 1, ErrorKind.PRECONDITION, "no more"),
        (LOGS * 2, 2, ErrorKind.UNAVAILABLE, "cut off"),
        (LOGS + b"\0\0", 1, ErrorKind.UNAVAILABLE, "not complete"),
        (b"<html>", 0, ErrorKind.UNAVAILABLE, "not one of gRPC-Web"),
        (b"\0" + (MAX_FRAME + 1).to_bytes(4, "big"), 0, ErrorKind.UNAVAILABLE, "more than 64 MiB"),
    ],
)
def test_a_stream_that_ends_badly(content: bytes, count: int, kind: ErrorKind, text: str) -> None:
    results: list[Any] = []
    with pytest.raises(MachineError, match=text) as caught:
        followed(Streams((200, {}, content)), results)
    assert (caught.value.kind, len(results)) == (kind, count)
