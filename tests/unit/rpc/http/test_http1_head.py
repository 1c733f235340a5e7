"""Request heads that are accepted, and the errors for all others."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.http.head import Head, HeadError, find_end, parse
from rpc.http.limits import HttpLimits

LIMITS = HttpLimits()


def read(raw: bytes, scheme: str = "http") -> Head:
    end = find_end(raw, LIMITS)
    assert end == len(raw)
    return parse(raw, LIMITS, scheme=scheme)


def test_an_ordinary_head() -> None:
    fields = b"Host: localhost:8080\r\nX-Thing:  \tv\xe4lue \t\r\nConnection: close, Upgrade\r\n\r\n"
    head = read(b"GET /a%20b?c=d HTTP/1.1\r\n" + fields)
    assert (head.method, head.path, head.version, head.host) == ("GET", "/a%20b?c=d", "1.1", "localhost:8080")
    assert head.get("x-thing") == "v\xe4lue"
    assert head.tokens("connection") == {"close", "upgrade"}
    assert head.get("absent") == ""


REFUSED = {
    "two lengths": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
    "two different lengths": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "listed length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400),
    "signed length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
    "negative length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
    "hexadecimal length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", 400),
    "empty length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
    "huge length": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n", 400),
    "length and chunked": (
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "chunked and length": (
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        400,
    ),
    "chunked twice": (
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "another coding": (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "identity coding": (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501),
    "disguised coding": (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400),
    "chunked in 1.0": (b"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "space before colon": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n", 400),
    "folded": (b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400),
    "folded first": (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    "no colon": (b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", 400),
    "no name": (b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
    "zero byte": (b"GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    "empty host": (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "host with user": (b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
    "host with path": (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    "other host in target": (b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "other scheme in target": (b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "fragment": (b"GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "no slash": (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "asterisk": (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "tab in line": (b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "lower-case protocol": (b"GET / http/1.1\r\nHost: a\r\n\r\n", 400),
    "no version": (b"GET /\r\nHost: a\r\n\r\n", 400),
    "empty line first": (b"\r\n\r\n", 400),
    "version 2.0": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "version 1.2": (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    "proxy": (b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 405),
    "too many fields": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100 + b"\r\n", 431),
    "long target": (b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "two authorizations": (b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    raw, status = REFUSED[name]
    with pytest.raises(HeadError) as caught:
        read(raw)
    assert caught.value.status == status


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\n",
        b"GET / HTTP/1.1\rHost",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n",
        b"\nGET",
    ],
)
def test_bare_line_ends_are_refused_before_the_head_is_complete(raw: bytes) -> None:
    with pytest.raises(HeadError) as caught:
        find_end(raw, LIMITS)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000, 431),
        (b"a" * 9000, 414),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 9000, 431),
    ],
)
def test_too_much_is_refused_before_the_head_is_complete(raw: bytes, status: int) -> None:
    with pytest.raises(HeadError) as caught:
        find_end(raw, LIMITS)
    assert caught.value.status == status


def test_a_carriage_return_at_the_end_may_yet_be_followed_by_a_line_feed() -> None:
    assert find_end(b"GET / HTTP/1.1\r", LIMITS) == 0
    assert find_end(b"GET / HTTP/1.1\r\n\r", LIMITS) == 0


@pytest.mark.parametrize(
    ("target", "host", "path"),
    [(b"http://a/b?c", b"a", "/b?c"), (b"HTTP://A", b"a", "/"), (b"http://[::1]:80/x", b"[::1]:80", "/x")],
)
def test_absolute_target_of_this_host(target: bytes, host: bytes, path: str) -> None:
    assert read(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n").path == path


def test_http_1_0_needs_no_host() -> None:
    assert read(b"GET / HTTP/1.0\r\n\r\n").host == ""


@given(st.binary(max_size=300), st.integers(0, 300))
def test_how_the_bytes_are_cut_changes_nothing(tail: bytes, cut: int) -> None:
    data = b"GET / HTTP/1.1\r\n" + tail

    def outcome(pieces: list[bytes]) -> object:
        got = b""
        for piece in pieces:
            got += piece
            try:
                if end := find_end(got, LIMITS):
                    return end
            except HeadError as error:
                return error.status
        return 0

    assert outcome([data]) == outcome([data[:cut], data[cut:]]) == outcome([data[i : i + 1] for i in range(len(data))])


TOKENS = st.text("abcXYZ-_09", min_size=1, max_size=10)
VALUES = st.text("abc ,;=\t\xe4/", max_size=20)


@given(st.lists(st.tuples(TOKENS, VALUES), max_size=10))
def test_agrees_with_h11_on_what_both_accept(fields: list[tuple[str, str]]) -> None:
    raw = b"POST /x HTTP/1.1\r\nhost: a\r\n"
    raw += b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in fields) + b"\r\n"
    head = read(raw)
    other = h11.Connection(h11.SERVER)
    other.receive_data(raw)
    request = other.next_event()
    assert isinstance(request, h11.Request)
    assert [(name.decode(), value.decode("latin-1")) for name, value in request.headers] == list(head.fields)


@given(st.binary(max_size=200))
def test_total(data: bytes) -> None:
    raw = data.replace(b"\r\n\r\n", b"") + b"\r\n\r\n"
    status = 200
    try:
        if find_end(raw, LIMITS) == len(raw):
            parse(raw, LIMITS, scheme="http")
    except HeadError as error:
        status = error.status
    assert status == 200 or 400 <= status < 600


def test_the_length_of_a_body_has_at_most_eighteen_digits() -> None:
    def with_length(digits: str) -> bytes:
        return b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n" % digits.encode()

    assert read(with_length("9" * 18)).get("content-length") == "9" * 18
    with pytest.raises(HeadError, match="not a number"):
        read(with_length("9" * 19))
