"""Downloads of releases from servers that break off, lie, redirect or stall, and from files."""

from __future__ import annotations

import errno
import hashlib
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme

from agent.releases.download import ReleaseDownloads
from agent.releases.web import Web
from agent.update.record import Release
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.agent.releases.hostile import Answer, Request, Send, Server, redirect, serving, status
from uplink import downloads as uplink_download
from uplink.dial import CloudAddress
from uplink.http import Headers

DATA = bytes(range(251)) * 10_000  # about 2.5 MB
SHA = hashlib.sha256(DATA).hexdigest()
LIMIT = 30.0


def release(origin: str, *, size: int = len(DATA), sha256: str = SHA) -> Release:
    return Release("1.0.0", sha256, size, origin, "linux/x86_64")


@asynccontextmanager
async def downloading(
    cloud: str, *, authorities: Path | None = None
) -> AsyncIterator[tuple[ReleaseDownloads, list[int]]]:
    """Yield downloads of a machine with this cloud, and the numbers of its sign-ins."""
    sign_ins: list[int] = []

    async def sign_in() -> Headers:
        sign_ins.append(len(sign_ins) + 1)
        return [("authorization", f"Bearer token-{len(sign_ins)}")]

    worker = Worker("test")
    address = CloudAddress(cloud, "part", "part", "robot-secret", "secret", authorities)
    async with worker.opened():
        with trio.fail_after(LIMIT):
            yield ReleaseDownloads(Web(address, worker, sign_in=sign_in), worker), sign_ins


async def refused(answer: Answer, file: Path, *, size: int = len(DATA)) -> MachineError:
    """Return the error of a download from a server that is not the cloud."""
    async with Server({"/file": answer}).opened() as server, downloading("http://cloud.test") as (downloads, _):
        with pytest.raises(MachineError) as caught:
            await downloads.download(release(f"{server.url}/file?signature=secret", size=size), file)
    assert "secret" not in str(caught.value)
    return caught.value


async def test_the_path_of_the_cloud_is_requested_with_the_token(tmp_path: Path) -> None:
    counts: list[int] = []
    async with Server({"/targets/x": serving(DATA)}).opened() as server, downloading(server.url) as (downloads, _):
        await downloads.download(release("/targets/x"), tmp_path / "file", counts.append)
    assert (tmp_path / "file").read_bytes() == DATA
    assert counts == sorted(counts)
    assert counts[-1] == len(DATA)
    headers = server.requests[0].headers
    assert (headers["authorization"], headers["accept-encoding"]) == ("Bearer token-1", "identity")


async def test_a_token_that_is_refused_is_renewed_once(tmp_path: Path) -> None:
    async def answer(request: Request, send: Send) -> None:
        good = request.headers["authorization"] == "Bearer token-2"
        await (serving(DATA) if good else status("401 Unauthorized"))(request, send)

    async with Server({"/a": answer}).opened() as server, downloading(server.url) as (downloads, sign_ins):
        await downloads.download(release("/a"), tmp_path / "file")
        await downloads.download(release("/a"), tmp_path / "again")
        assert sign_ins == [1, 2]
        server.answers["/a"] = status("401 Unauthorized", b"unknown machine")
        with pytest.raises(MachineError, match="unknown machine") as caught:
            await downloads.download(release("/a"), tmp_path / "third")
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    assert sign_ins == [1, 2, 3]


@pytest.mark.parametrize("size", [len(DATA), 0])
async def test_an_interrupted_download_continues(tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    answers = {"/file": serving(DATA, end=1_000_000)}
    async with Server(answers).opened() as server, downloading("http://cloud.test") as (downloads, _):
        with pytest.raises(MachineError) as caught:
            await downloads.download(release(f"{server.url}/file", size=size), file)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert file.stat().st_size == 1_000_000
        answers["/file"] = serving(DATA)
        await downloads.download(release(f"{server.url}/file", size=size), file)
    assert file.read_bytes() == DATA
    assert server.requests[1].headers["range"] == "bytes=1000000-"
    assert "if-range" not in server.requests[1].headers  # another server's tag is not the hash


@pytest.mark.parametrize(("size", "requests"), [(len(DATA), 0), (0, 1)])
async def test_a_complete_file_is_not_downloaded_again(tmp_path: Path, size: int, requests: int) -> None:
    (tmp_path / "file").write_bytes(DATA)
    async with Server({"/file": serving(DATA)}).opened() as server, downloading("http://cloud.test") as (downloads, _):
        await downloads.download(release(f"{server.url}/file", size=size), tmp_path / "file")
    assert len(server.requests) == requests
    assert (tmp_path / "file").read_bytes() == DATA


async def test_received_bytes_stay_if_a_slow_download_is_cancelled(tmp_path: Path) -> None:
    received = trio.Event()

    async def drip(request: Request, send: Send) -> None:
        await send(f"HTTP/1.1 200 OK\r\ncontent-length: {len(DATA)}\r\n\r\n".encode() + DATA[:300_000])
        await trio.sleep_forever()

    async with Server({"/file": drip}).opened() as server, downloading("http://cloud.test") as (downloads, _):

        def progress(count: int) -> None:
            if count == 300_000:
                received.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(downloads.download, release(f"{server.url}/file"), tmp_path / "file", progress)
            await received.wait()
            nursery.cancel_scope.cancel()
    assert (tmp_path / "file").read_bytes() == DATA[:300_000]


async def test_a_server_that_ignores_the_range_sends_everything(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA[:1000])
    answers = {"/file": status("200 OK", DATA)}
    async with Server(answers).opened() as server, downloading("http://cloud.test") as (downloads, _):
        await downloads.download(release(f"{server.url}/file"), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA


def endless(begin: str) -> Answer:
    async def answer(request: Request, send: Send) -> None:
        await send(f"HTTP/1.1 {begin}\r\n\r\n".encode())
        while True:
            await send(bytes(1_000_000))

    return answer


@pytest.mark.parametrize(
    ("answer", "size", "kind", "words"),
    [
        (status("200 OK", DATA[:-1]), len(DATA), ErrorKind.INVALID, "has 2509999 bytes, not 2510000"),
        (status("200 OK", DATA + b"x"), len(DATA), ErrorKind.INVALID, "has 2510001 bytes"),
        (status("200 OK", b"x" + DATA[1:]), len(DATA), ErrorKind.INVALID, "its SHA-256 is"),
        (status("200 OK", DATA, content_encoding="gzip"), len(DATA), ErrorKind.INVALID, "encoding 'gzip'"),
        (endless("200 OK"), len(DATA), ErrorKind.INVALID, "is larger than 2510000 bytes"),
        (endless(f"200 OK\r\ncontent-length: {10**12}"), 0, ErrorKind.INVALID, "at most 268435456"),
        (endless("200 OK\r\ncontent-length: 1\r\ncontent-length: 2"), 0, ErrorKind.UNAVAILABLE, "cannot be read"),
        (endless("200 OK\r\nx: " + "x" * 200_000), 0, ErrorKind.UNAVAILABLE, "cannot be read"),
        (endless("301 x\r\nlocation: /file"), 0, ErrorKind.UNAVAILABLE, "more than 5 redirects"),
        (status("206 x", DATA, content_range="bytes 0-1/2"), 0, ErrorKind.UNAVAILABLE, "HTTP status 206"),
        (status("204 No Content"), 0, ErrorKind.UNAVAILABLE, "HTTP status 204"),
        (status("401 x"), 0, ErrorKind.UNAUTHENTICATED, "HTTP status 401"),
        (status("403 x", b"secret text"), 0, ErrorKind.PERMISSION, "HTTP status 403"),
        (status("404 x", b"secret text"), 0, ErrorKind.NOT_FOUND, "HTTP status 404"),
        (status("410 x"), 0, ErrorKind.NOT_FOUND, "HTTP status 410"),
        (status("429 x"), 0, ErrorKind.UNAVAILABLE, "HTTP status 429"),
        (status("503 x"), 0, ErrorKind.UNAVAILABLE, "HTTP status 503"),
        (redirect("ftp://files.test/x"), 0, ErrorKind.INVALID, "is not an HTTP URL"),
        (redirect("http://[::1"), 0, ErrorKind.INVALID, "a URL that is not valid"),
        (redirect(""), 0, ErrorKind.PERMISSION, "redirects to nowhere"),
    ],
)
async def test_answers_that_are_refused(tmp_path: Path, answer: Answer, size: int, kind: ErrorKind, words: str) -> None:
    error = await refused(answer, tmp_path / "file", size=size)
    assert error.kind is kind, error
    assert words in str(error)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    "answer",
    [
        status("206 x", b"12345", content_range=f"bytes 7-11/{len(DATA)}"),
        status("206 x", b"12345"),
        status("416 x", content_range="bytes */7"),
    ],
)
async def test_after_a_wrong_range_the_download_begins_again(tmp_path: Path, answer: Answer) -> None:
    (tmp_path / "file").write_bytes(DATA[:1000])
    assert (await refused(answer, tmp_path / "file")).kind is ErrorKind.UNAVAILABLE
    assert not (tmp_path / "file").exists()


async def test_a_server_that_does_not_listen_and_one_that_closes_at_once(tmp_path: Path) -> None:
    async def close(request: Request, send: Send) -> None:
        pass

    assert (await refused(close, tmp_path / "file")).kind is ErrorKind.UNAVAILABLE
    async with Server().opened() as server:
        pass
    async with downloading("http://cloud.test") as (downloads, _):
        with pytest.raises(MachineError) as caught:
            await downloads.download(release(f"{server.url}/file"), tmp_path / "file")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_credentials_are_sent_to_the_cloud_only_also_if_a_redirect_leads_back(tmp_path: Path) -> None:
    async with Server().opened() as cloud, Server().opened() as other, downloading(cloud.url) as (downloads, _):
        cloud.answers |= {"/file": redirect(f"{other.url}/b"), "/c": serving(DATA)}
        other.answers |= {"/b": redirect(f"{cloud.url}/c")}
        await downloads.download(release("/file"), tmp_path / "file")
        sent = [request.headers.get("authorization") for request in (*cloud.requests, *other.requests)]
        assert sent == ["Bearer token-1", None, None]


async def test_the_password_of_a_url_is_sent_to_its_host_only_and_never_shown(tmp_path: Path) -> None:
    async with (
        Server().opened() as first,
        Server().opened() as other,
        downloading("http://cloud.test") as (downloads, _),
    ):
        url = f"http://me:pass%20word@127.0.0.1:{first.port}"
        first.answers |= {"/a": redirect("/b"), "/b": redirect(f"http://me:pass@127.0.0.1:{other.port}/c")}
        with pytest.raises(MachineError, match="404") as caught:
            await downloads.download(release(f"{url}/a"), tmp_path / "file")
        assert "pass" not in str(caught.value)
        sent = [request.headers.get("authorization") for request in (*first.requests, *other.requests)]
        assert sent == ["Basic bWU6cGFzcyB3b3Jk", "Basic bWU6cGFzcyB3b3Jk", None]


async def test_tls_with_the_certificates_of_the_cloud_and_no_way_back_to_plain_text(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    pem = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(pem))
    async with Server(tls=context).opened() as cloud, Server({"/a": serving(DATA)}).opened() as plain:
        cloud.answers |= {"/a": serving(DATA), "/plain": redirect(f"{plain.url}/a"), "/same": redirect("/a")}
        async with downloading(cloud.url, authorities=pem) as (downloads, _):
            await downloads.download(release("/same"), tmp_path / "file")
            with pytest.raises(MachineError, match="not an https") as caught:
                await downloads.download(release("/plain"), tmp_path / "other")
            assert caught.value.kind is ErrorKind.PERMISSION
            assert plain.requests == []
        async with downloading("https://cloud.test", authorities=pem) as (downloads, _):
            with pytest.raises(MachineError, match="CERTIFICATE_VERIFY_FAILED"):  # it is not the cloud
                await downloads.download(release(f"{cloud.url}/a"), tmp_path / "third")
    assert (tmp_path / "file").read_bytes() == DATA


async def test_a_full_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def write(self: uplink_download.IncompleteDownload, data: bytes, at: int) -> None:
        written.append(at)
        self.path.write_bytes(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(uplink_download.IncompleteDownload, "write", write)
    (tmp_path / "source").write_bytes(DATA)
    assert (await refused(serving(DATA), tmp_path / "file")).kind is ErrorKind.EXHAUSTED
    async with downloading("http://cloud.test") as (downloads, _):
        with pytest.raises(MachineError, match="full"):
            await downloads.download(release(f"file://{tmp_path}/source"), tmp_path / "file")
    assert written
    assert not (tmp_path / "file").exists()


async def test_a_disk_with_little_space_is_left_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        uplink_download.IncompleteDownload, "free_space", lambda part: uplink_download.RESERVE + 1_500_000
    )
    for size in (len(DATA), 0):
        error = await refused(serving(DATA), tmp_path / "file", size=size)
        assert error.kind is ErrorKind.EXHAUSTED
    # Without a length the space is checked at each write.
    monkeypatch.setattr(
        uplink_download.IncompleteDownload, "free_space", lambda part: uplink_download.RESERVE + 900_000
    )
    assert (await refused(endless("200 OK"), tmp_path / "file", size=0)).kind is ErrorKind.EXHAUSTED
    assert not (tmp_path / "file").exists()


async def test_a_local_file(tmp_path: Path) -> None:
    source, file = tmp_path / "a file", tmp_path / "downloads" / "file"
    source.write_bytes(DATA)
    async with downloading("http://cloud.test") as (downloads, _):
        counts: list[int] = []
        for size in (len(DATA), 0):
            await downloads.download(release(f"file://{tmp_path}/a%20file", size=size), file, counts.append)
            assert file.read_bytes() == DATA
        assert counts == [len(DATA), len(DATA)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("missing", ErrorKind.NOT_FOUND),
        ("pipe", ErrorKind.INVALID),
        ("folder", ErrorKind.INVALID),
        ("short", ErrorKind.INVALID),
        ("other", ErrorKind.INVALID),
    ],
)
async def test_a_local_file_that_is_not_the_release(tmp_path: Path, name: str, kind: ErrorKind) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "short").write_bytes(DATA[:-1])
    (tmp_path / "other").write_bytes(b"x" + DATA[1:])
    async with downloading("http://cloud.test") as (downloads, _):
        with pytest.raises(MachineError, match=name) as caught:
            await downloads.download(release(f"file://{tmp_path}/{name}"), tmp_path / "file")
    assert caught.value.kind is kind
    assert not (tmp_path / "file").exists()
