"""Compressed pages: for requests of a person and of our own pages, never for those of other sites."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from rpc.pages.compression import LEAST, MOST, Compress

PAGE = "<p>a page</p>" * LEAST
OWN = {"accept-encoding": "gzip, br", "sec-fetch-site": "same-origin"}


async def page(_: Request) -> Response:
    return HTMLResponse(PAGE)


async def stream(_: Request) -> Response:
    async def pieces() -> Any:
        yield PAGE
        yield "end"

    return StreamingResponse(pieces(), media_type="text/html")


async def huge(_: Request) -> Response:
    return HTMLResponse("x" * (MOST + 1))


async def short(_: Request) -> Response:
    return HTMLResponse("x")


async def picture(_: Request) -> Response:
    return PlainTextResponse(PAGE, media_type="image/png")


APP = Starlette(
    routes=[Route(f"/{each.__name__}", each) for each in (page, stream, huge, short, picture)],
    middleware=[Middleware(Compress)],
)


async def answer(path: str, headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
    messages: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Any:
        await trio.sleep_forever()

    async def send(message: Any) -> None:
        messages.append(message)

    await APP(scope, receive, send)
    assert [message["type"] for message in messages].count("http.response.start") == 1
    assert messages[0]["type"] == "http.response.start"
    fields = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return fields, b"".join(message.get("body", b"") for message in messages[1:])


@pytest.mark.parametrize("site", ["none", "same-origin"])
async def test_a_page_is_compressed(site: str) -> None:
    fields, body = await answer("/page", {**OWN, "sec-fetch-site": site})
    assert (fields["content-encoding"], fields["content-length"]) == ("gzip", str(len(body)))
    assert len(body) < len(PAGE) / 10
    assert gzip.decompress(body).decode() == PAGE


@pytest.mark.parametrize(
    "headers",
    [
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
        {"accept-encoding": "gzip"},  # an old browser does not say who asks
        {"sec-fetch-site": "none"},
    ],
)
async def test_a_request_of_another_site_is_answered_uncompressed(headers: dict[str, str]) -> None:
    fields, body = await answer("/page", headers)
    assert "content-encoding" not in fields
    assert body.decode() == PAGE


@pytest.mark.parametrize("path", ["/stream", "/huge", "/short", "/picture"])
async def test_other_answers_are_sent_as_they_are(path: str) -> None:
    fields, body = await answer(path, OWN)
    assert "content-encoding" not in fields
    assert len(body) == {"/stream": len(PAGE) + 3, "/huge": MOST + 1, "/short": 1, "/picture": len(PAGE)}[path]
