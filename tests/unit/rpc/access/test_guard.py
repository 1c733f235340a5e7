"""The guard of the web pages: origins, host names, tokens and the login form."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from grpclib.exceptions import GRPCError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from rpc.access.auth import Authenticator, Credential
from rpc.access.credential_types import API_KEY
from rpc.access.guard import Guard, identity_of
from rpc.access.login import CALLS, TOKEN_PATH, LoginTexts, local_target
from rpc.access.tokens import Signer
from tests.unit.rpc.http1.support import PEER, serving

KEY = Credential(API_KEY, "id", "the-key")
HTML = ("accept", "text/html,*/*")


async def show(request: Request) -> JSONResponse:
    who = identity_of(request.scope)
    return JSONResponse({"who": who and who.entity, "on": request.scope["state"]["authentication"]})


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.close()


PAGES = Starlette(
    routes=[
        Route("/", show, methods=["GET", "POST"]),
        Route("/healthz", show),
        Route("/page", show),
        WebSocketRoute("/ws", socket),
    ]
)


def guarded(
    *keys: Credential, names: tuple[str, ...] | None = (), texts: LoginTexts | None = None
) -> tuple[Guard, Authenticator]:
    gate = Authenticator(credentials=keys)
    return Guard(PAGES, gate, names=names, texts=texts or LoginTexts()), gate


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 200),
        ([("origin", "http://localhost:8080")], 200),
        ([("origin", "HTTP://LOCALHOST:8080")], 200),
        ([("origin", "https://localhost:8080")], 403),
        ([("origin", "http://localhost:3000")], 403),
        ([("origin", "http://evil.example")], 403),
        ([("origin", "null")], 403),
        ([("sec-fetch-site", "same-origin")], 200),
        ([("sec-fetch-site", "none")], 200),
        ([("sec-fetch-site", "same-site")], 403),
        ([("sec-fetch-site", "cross-site")], 403),
    ],
)
async def test_controls_are_for_own_pages(headers: list[tuple[str, str]], status: int) -> None:
    guard, _ = guarded()
    async with serving(guard) as server:
        client = server.connect()
        assert (await client.request("POST", "/", headers)).status == status
        assert (await client.request("GET", "/", headers)).status == 200  # changes nothing and cannot be read


async def test_names_of_a_server_on_loopback() -> None:
    raw = b"GET / HTTP/1.1\r\nhost: %b\r\nconnection: close\r\n\r\n"
    for names, host, status in (
        ((), b"evil.example:8080", b"421"),
        ((), b"localhost", b"200"),
        (("robot.local",), b"robot.local", b"200"),
        (None, b"evil.example", b"200"),
    ):
        guard, _ = guarded(names=names)
        async with serving(guard) as server:
            assert (await server.connect().raw(raw % host)).split()[1] == status, host


async def test_a_proxy_before_it_ends_tls() -> None:
    for public_url, host, origin, status in (
        ("https://cloud.example", "cloud.example", "https://cloud.example", b"303"),
        ("https://cloud.example:443/", "Cloud.Example", "https://cloud.example", b"303"),
        ("https://cloud.example:8443", "cloud.example:8443", "https://cloud.example:8443", b"303"),
        ("https://cloud.example", "cloud.example", "http://cloud.example", b"403"),  # what a network attacker may send
        ("https://cloud.example", "cloud.example", "https://evil.example", b"403"),
        ("https://cloud.example", "localhost:80", "http://localhost:80", b"303"),
        ("http://cloud.example", "cloud.example", "https://cloud.example", b"403"),
        ("", "cloud.example", "https://cloud.example", b"403"),
    ):
        gate = Authenticator(credentials=[KEY])
        body = urlencode({"id": "id", "key": "the-key"})
        head = f"host: {host}\r\norigin: {origin}\r\nconnection: close\r\ncontent-length: {len(body)}"
        form = "content-type: application/x-www-form-urlencoded"
        async with serving(Guard(PAGES, gate, names=None, public_url=public_url)) as server:
            answer = await server.connect().raw(f"POST /login HTTP/1.1\r\n{head}\r\n{form}\r\n\r\n{body}".encode())
        assert answer.split()[1] == status, (public_url, host, origin)
        assert (b"; Secure" in answer) == (status == b"303" and origin.startswith("https")), (public_url, host)


async def test_the_address_outside_is_a_name_of_a_server_on_loopback() -> None:
    for public_url, host, status in (
        ("https://cloud.example", b"cloud.example", b"200"),
        ("http://cloud.example:8090", b"cloud.example:8090", b"200"),
        ("https://cloud.example", b"evil.example", b"421"),
        ("", b"cloud.example", b"421"),
    ):
        async with serving(Guard(PAGES, guarded()[1], public_url=public_url)) as server:
            answer = await server.connect().raw(b"GET / HTTP/1.1\r\nhost: %b\r\nconnection: close\r\n\r\n" % host)
        assert answer.split()[1] == status, (public_url, host)


async def test_no_page_may_be_framed() -> None:
    guard, _ = guarded()
    async with serving(guard) as server:
        response = await server.connect().request("GET", "/")
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers


async def test_an_open_server_asks_for_nothing() -> None:
    guard, _ = guarded()
    async with serving(guard) as server:
        assert (await server.connect().request("GET", "/")).body == b'{"who":null,"on":false}'
        assert (await server.connect().request("GET", "/login")).status == 404


async def test_a_token_opens_the_pages() -> None:
    guard, gate = guarded(KEY)
    token = gate.authenticate("id", API_KEY, "the-key", peer=PEER)
    async with serving(guard) as server:
        client = server.connect()
        refused = await client.request("GET", "/")
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        bearer = [("authorization", f"Bearer {token}")]
        assert (await client.request("GET", "/", bearer)).body == b'{"who":"id","on":true}'
        cookie = [("cookie", f"a=b; machine_token={token}")]
        assert (await client.request("GET", "/", cookie)).body == b'{"who":"id","on":true}'
        assert (await client.request("GET", "/healthz")).status == 200
        assert (await client.request("GET", "/healthz/../")).status == 401
        gate.configure([Credential(API_KEY, "id", "changed")])
        assert (await client.request("GET", "/", bearer)).status == 401


async def test_public_calls_are_listed() -> None:
    """Only `/` is public, not everything below it: that once showed the log of a machine with keys without a key."""
    gate = Authenticator(credentials=[KEY])
    guard = Guard(PAGES, gate, public=("/", "/healthz"), public_below=("/files/",))
    async with serving(guard) as server:
        client = server.connect()
        for path, status in (
            ("/", 200),
            ("/healthz", 200),
            ("/healthz/more", 401),
            ("/page", 401),
            ("/files/a/b", 404),  # admitted, but the path does not exist
            ("/files", 401),
            ("/filesystem", 401),
        ):
            assert (await client.request("GET", path)).status == status, path
    for wrong in ("/", "/files", ""):
        with pytest.raises(ValueError, match="below one folder"):
            Guard(PAGES, gate, public_below=(wrong,))


async def test_a_browser_is_sent_to_the_form_and_back() -> None:
    guard, _ = guarded(KEY)
    async with serving(guard) as server:
        client = server.connect()
        sent = await client.request("GET", "/page?a=b&c", [HTML])
        assert (sent.status, sent.headers["location"]) == (303, "/login?next=/page%3Fa%3Db%26c")
        form = await client.request("GET", sent.headers["location"])
        assert form.status == 200
        assert b'name="next" value="/page?a=b&amp;c"' in form.body
        assert "form-action 'self'" in form.headers["content-security-policy"]
        body = urlencode({"id": "id", "key": "the-key", "next": "/page?a=b&c"}).encode()
        done = await client.request("POST", "/login", [("origin", "http://localhost:8080")], body)
        assert (done.status, done.headers["location"]) == (303, "/page?a=b&c")
        cookie = done.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie  # the connection is plain text; the port's test covers TLS
        pair = [("cookie", cookie.partition(";")[0])]
        assert (await client.request("GET", "/page", pair)).status == 200
        out = await client.request("POST", "/logout", pair)
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert (await client.request("GET", "/page", pair)).status == 401  # revoked, not only deleted from the browser


async def test_a_wrong_key_in_the_form() -> None:
    guard, _ = guarded(KEY)
    async with serving(guard) as server:
        client = server.connect()
        body = urlencode({"id": "<b>", "key": "guess", "next": "//evil.example"}).encode()
        for _ in range(20):
            response = await client.request("POST", "/login", body=body)
            assert response.status == 401
        assert b"guess" not in response.body
        assert b'name="id" value="&lt;b&gt;"' in response.body  # the form keeps the id and asks only for the key
        assert b'autocomplete="current-password" required autofocus' in response.body
        assert b'value="/"' in response.body
        assert "set-cookie" not in response.headers
        assert (await client.request("POST", "/login", body=body)).status == 429
        assert (await client.request("POST", "/login", body=b"key=" + b"x" * 5000)).status == 413
        foreign = await client.request("POST", "/login", [("origin", "http://evil.example")], body)
        assert foreign.status == 403


async def test_the_form_says_what_one_logs_in_to() -> None:
    guard, _ = guarded(KEY, texts=LoginTexts("Log in to <it>", "Keys & such"))
    async with serving(guard) as server:
        text = (await server.connect().request("GET", "/login")).body.decode()
        assert "<title>Log in to &lt;it&gt;</title>" in text
        assert "<h1>Log in to &lt;it&gt;</h1>" in text
        assert "Keys &amp; such" in text
        assert 'value="" autocomplete="username" required autofocus' in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [(b"", b"401"), (b"origin: http://evil.example\r\n", b"403"), (b"authorization: Bearer %b\r\n", b"101")],
)
async def test_websockets(headers: bytes, status: bytes) -> None:
    guard, gate = guarded(KEY)
    token = gate.authenticate("id", API_KEY, "the-key", peer=PEER)
    request = b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    request += b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    request += headers.replace(b"%b", token.encode()) + b"\r\n"
    async with serving(guard) as server:
        client = server.connect()
        await client.stream.send_all(request)
        assert (await client.stream.receive_some(10_000)).split()[1] == status


@pytest.mark.parametrize(
    ("target", "safe"),
    [
        ("/a?b", "/a?b"),
        ("//evil", "/"),
        ("https://evil", "/"),
        ("/\\evil", "/"),
        ("", "/"),
        ("/a\r\nx: y", "/"),
        ("/ä", "/"),
    ],
)
def test_targets_of_a_login(target: str, safe: str) -> None:
    assert local_target(target) == safe


@pytest.mark.parametrize(
    ("public_url", "host", "strict"),
    [
        ("https://cloud.example", b"cloud.example", True),
        ("https://cloud.example:443", b"Cloud.Example:443", True),
        ("https://cloud.example:8090", b"cloud.example:8090", False),  # other ports of the host may be without TLS
        ("https://192.0.2.1", b"192.0.2.1", False),
        ("https://localhost", b"localhost", False),
        ("http://cloud.example", b"cloud.example", False),
    ],
)
async def test_browsers_use_tls_only_where_it_is_on_the_default_port(
    public_url: str, host: bytes, strict: bool
) -> None:
    for path in (b"/", b"/login", b"/page"):
        async with serving(Guard(PAGES, guarded(KEY)[1], public_url=public_url)) as server:
            answer = await server.connect().raw(
                b"GET %b HTTP/1.1\r\nhost: %b\r\nconnection: close\r\n\r\n" % (path, host)
            )
        assert (b"\r\nstrict-transport-security: max-age=31536000\r\n" in answer.lower()) is strict, answer


async def test_a_script_of_a_page_gets_a_token_for_calls_that_ends_with_the_session() -> None:
    guard, gate = guarded(KEY)
    own = ("origin", "http://localhost:8080")
    async with serving(guard) as server:
        client = server.connect()
        body = urlencode({"id": "id", "key": "the-key", "next": "/"}).encode()
        done = await client.request("POST", "/login", [own], body)
        session = ("cookie", done.headers["set-cookie"].partition(";")[0])
        answer = await client.request("POST", TOKEN_PATH, [own, session])
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        answered = json.loads(answer.body)
        assert answered["seconds"] == CALLS
        metadata = {"authorization": f"Bearer {answered['token']}"}
        caller = gate.authorize("/a.b.C/D", metadata)
        assert caller is not None
        assert caller.entity == "id"
        # not to other sites, not by reading, not without a session, not for a token of a program
        assert (await client.request("POST", TOKEN_PATH, [("origin", "http://evil.example"), session])).status == 403
        assert (await client.request("GET", TOKEN_PATH, [session])).status == 405
        assert (await client.request("POST", TOKEN_PATH, [own])).status == 401
        program = gate.authenticate("id", API_KEY, "the-key", peer=PEER)
        assert (await client.request("POST", TOKEN_PATH, [own, ("authorization", f"Bearer {program}")])).status == 401
        bearer = ("authorization", f"Bearer {answered['token']}")
        assert (await client.request("POST", TOKEN_PATH, [own, bearer])).status == 401  # it cannot extend itself
        # it ends with the session
        await client.request("POST", "/logout", [own, session])
        with pytest.raises(GRPCError):
            gate.authorize("/a.b.C/D", metadata)
        assert gate.authorize("/a.b.C/D", {"authorization": f"Bearer {program}"}) is not None


async def test_a_token_for_calls_expires_and_ends_with_the_key() -> None:
    now = 1000.0
    gate = Authenticator(Signer(clock=lambda: now), credentials=[KEY])
    session = await gate.identified(gate.authenticate("id", API_KEY, "the-key", peer=PEER, life=3600))
    assert session is not None
    token = gate.token_for_calls(session, CALLS)
    assert token is not None
    assert gate.identify(token) is not None
    now += CALLS
    assert gate.identify(token) is None
    gate.configure([Credential(API_KEY, "id", "changed")])
    assert gate.identify(gate.token_for_calls(session, CALLS) or "") is not None  # only sessions in force get here
    gate.configure([Credential(API_KEY, "other", "key")])
    assert gate.token_for_calls(session, CALLS) is None
