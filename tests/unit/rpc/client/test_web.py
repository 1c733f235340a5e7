"""Unary calls over gRPC-Web: what a server, or a proxy before it, may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rpc.access.auth import AUTHENTICATE
from rpc.api import messages
from rpc.api.client import ApiClient
from rpc.client.web import WebChannel
from rpc.http.grpc_web import trailers_frame
from schema.errors import ErrorKind, MachineError
from training.client.blocking import run

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
    return run(ApiClient(WebChannel(http, "id", key)).call(APP, "", "list_organizations"))


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
        run(client.call(APP, "", "list_organizations"))
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
        run(first())
    assert caught.value.kind is ErrorKind.UNSUPPORTED


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(WebChannel(Answers(), "id", "secret"))
