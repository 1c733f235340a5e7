"""Framing of HTTP/1.1 against h11, which many servers use."""

from __future__ import annotations

from collections.abc import Sequence

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.http.head import Head, HeadError
from rpc.http1.framing import Body, Framer

CHUNKED = [("host", "x"), ("transfer-encoding", "chunked")]


def head(method: str = "POST", version: str = "1.1", fields: Sequence[tuple[str, str]] = ()) -> Head:
    return Head(method, "/", version, "x", [("host", "x"), *fields])


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]


def read(fields: Sequence[tuple[str, str]], parts: Sequence[bytes]) -> tuple[bytes, bool, bytes] | None:
    """Return the content, whether it is complete, and the bytes after it; None if it is refused."""
    body, content = Body(head(fields=fields)), b""
    try:
        for part in parts:
            body.feed(part)
            content += body.take()
    except HeadError:
        return None
    return content, body.ended, body.rest if body.ended else b""


def read_by_h11(parts: Sequence[bytes]) -> tuple[bytes, bool, bytes] | None:
    connection, content = h11.Connection(h11.SERVER), b""
    connection.receive_data(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
    connection.next_event()
    try:
        for part in parts:
            connection.receive_data(part)
            while isinstance(event := connection.next_event(), h11.Data):
                content += bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                return content, True, connection.trailing_data[0]
    except h11.RemoteProtocolError:
        return None
    return content, False, b""


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    st.sampled_from([b"", b"x-sum: 1\r\n", b"a: \xff\r\nb:2\r\n"]),
    st.binary(max_size=5),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_chunks_in_any_pieces_are_the_content(
    chunks: list[bytes], trailers: bytes, after: bytes, cuts: list[int]
) -> None:
    data = b"".join(b"%x;name=value\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    data += b"0\r\n" + trailers + b"\r\n" + after
    assert read(CHUNKED, pieces(data, cuts)) == (b"".join(chunks), True, after)


@given(st.binary(max_size=50), st.binary(max_size=5), st.lists(st.integers(0, 60), max_size=8))
def test_a_length_ends_the_content(content: bytes, after: bytes, cuts: list[int]) -> None:
    fields = [("content-length", str(len(content)))]
    assert read(fields, pieces(content + after, cuts)) == (content, True, after)


WORDS = (
    *(b"0", b"1", b"5", b"a", b"G", b"+1", b"-1", b"0x1", b" ", b"\t", b";", b"=", b":", b"\r\n", b"\r", b"\n", b"\0"),
    *(b"hello", b"x", b"x: y", b"\xff", b"00000000000000001", b"fffffffffffffffff", b"0\r\n\r\n", b"1\r\nx\r\n"),
)
ODD = st.lists(st.sampled_from(WORDS), max_size=12)


@given(ODD, st.lists(st.integers(0, 60), max_size=4))
def test_h11_reads_what_is_accepted_in_the_same_way(words: list[bytes], cuts: list[int]) -> None:
    """A proxy may be the other reader: what both accept must end at the same byte."""
    data = b"".join(words)
    ours = read(CHUNKED, [data] if data else [])
    assert read(CHUNKED, pieces(data, cuts)) == ours  # also in pieces
    if ours is not None and ours[1]:
        assert read_by_h11([data]) == ours


@pytest.mark.parametrize(
    "data",
    [
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5;a=\n\r\nhello\r\n0\r\n\r\n",
        b"5;\0\r\nhello\r\n0\r\n\r\n",
        b"00000000000000005\r\nhello\r\n0\r\n\r\n",
        b"0\r\n folded: x\r\n\r\n",
        b"0\r\nx : y\r\n\r\n",
        b"0\r\nx: \n\r\n\r\n",
        b"5" + b";x" * 4096,
        b"0\r\nx: " + b"y" * 5000,
    ],
)
def test_ambiguous_chunks_are_refused(data: bytes) -> None:
    assert read(CHUNKED, [data]) is None
    assert read(CHUNKED, [bytes([byte]) for byte in data]) is None


@given(
    st.sampled_from(["GET", "HEAD"]),
    st.sampled_from(["1.1", "1.0"]),
    st.sampled_from([200, 204, 304, 404]),
    st.booleans(),
    st.lists(st.binary(max_size=20), max_size=4),
)
def test_h11_reads_responses(method: str, version: str, status: int, announced: bool, parts: list[bytes]) -> None:
    framer = Framer(head(method, version))
    content = b"".join(parts)
    headers = [("x-a", "ä"), *([("content-length", str(len(content)))] if announced else [])]
    data = framer.head(status, "Reason", headers) + b"".join(map(framer.content, parts)) + framer.end()
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    if framer.closes:
        client.receive_data(b"")
    response = client.next_event()
    assert isinstance(response, h11.Response)
    assert (response.status_code, dict(response.headers)[b"x-a"]) == (status, "ä".encode("latin-1"))
    received = b""
    while isinstance(event := client.next_event(), h11.Data):
        received += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert received == (b"" if method == "HEAD" or status in (204, 304) else content)
    assert client.trailing_data[0] == b""


def test_an_application_cannot_break_the_framing() -> None:
    for field in (("x", "a\r\nb: c"), ("x\n", "a"), ("x y", "a"), ("", "a")):
        with pytest.raises(RuntimeError, match="malformed"):
            Framer(head()).head(200, "OK", [field])
    framer = Framer(head())
    with pytest.raises(RuntimeError, match="has not begun"):
        framer.content(b"x")
    framer.head(200, "OK", [("content-length", "2")])
    with pytest.raises(RuntimeError, match="already begun"):
        framer.head(200, "OK", [])
    with pytest.raises(RuntimeError, match="longer than its content-length"):
        framer.content(b"abc")
    framer.content(b"a")
    with pytest.raises(RuntimeError, match="shorter than its content-length"):
        framer.end()
    framer.content(b"b")
    framer.end()
    with pytest.raises(RuntimeError, match="already ended"):
        framer.content(b"x")
