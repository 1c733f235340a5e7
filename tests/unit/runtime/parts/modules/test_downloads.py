"""Downloads of packages: interrupted ones resume, and only the promised content is kept."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import trio

from runtime.programs import store
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.runtime.parts.modules.web import DATA, LIMIT, SHA, Answer, Web, whole
from uplink.downloads import RESERVE, DownloadSource, Expected, IncompleteDownload, download, part_of


def status(line: str, body: bytes = b"") -> Answer:
    return lambda headers: (f"{line}\r\ncontent-length: {len(body)}", body)


def cut(after: int) -> Answer:
    def answer(headers: dict[str, str]) -> tuple[str, bytes]:
        head, body = whole(headers)
        return head, body[:after]

    return answer


async def fetched(root: Path, web: Web, *, size: int = len(DATA), sha256: str = SHA) -> list[int]:
    """Download once and return the reported progress."""
    messages: list[int] = []
    worker = Worker("test")
    async with worker.opened():
        with trio.fail_after(LIMIT):
            await download(
                DownloadSource.of(web.url, [("authorization", "Bearer x")], etag=SHA),
                IncompleteDownload(part_of(root, sha256)), worker,
                Expected(sha256, size), progress=messages.append,
            )  # fmt: skip
    return messages


async def test_a_download(tmp_path: Path) -> None:
    async with Web(whole).open() as web:
        result = await fetched(tmp_path, web)
        assert store.part_of(tmp_path, SHA).read_bytes() == DATA
        assert result[-1] == len(DATA)
        assert result == sorted(result)
        assert web.asked[0]["authorization"] == "bearer x"
        await fetched(tmp_path, web)
        assert len(web.asked) == 1  # a complete file is not requested again


async def test_an_interrupted_download_is_resumed(tmp_path: Path) -> None:
    async with Web(cut(3_000_000), cut(1_500_000), whole).open() as web:
        for so_far in (3_000_000, 4_500_000):
            with pytest.raises(MachineError) as caught:
                await fetched(tmp_path, web)
            assert caught.value.kind is ErrorKind.UNAVAILABLE
            assert store.part_of(tmp_path, SHA).stat().st_size == so_far
        await fetched(tmp_path, web)
        assert [item.get("range", "") for item in web.asked] == ["", "bytes=3000000-", "bytes=4500000-"]
        assert store.part_of(tmp_path, SHA).read_bytes() == DATA


async def test_a_server_without_ranges_restarts_the_download(tmp_path: Path) -> None:
    async with Web(cut(3_000_000), lambda headers: whole({})).open() as web:
        with pytest.raises(MachineError):
            await fetched(tmp_path, web)
        await fetched(tmp_path, web)
        assert store.part_of(tmp_path, SHA).read_bytes() == DATA


async def test_content_that_is_another_is_thrown_away(tmp_path: Path) -> None:
    async with Web(lambda headers: whole(headers, b"x" + DATA[1:])).open() as web:
        with pytest.raises(MachineError, match="is not the file that was published"):
            await fetched(tmp_path, web)
        assert not store.part_of(tmp_path, SHA).exists()


@pytest.mark.parametrize(
    ("line", "words"), [("200 OK\r\ncontent-length: 15060000", "has 15060000 bytes"), ("200 OK", "is larger than")]
)
async def test_more_than_was_promised_is_not_kept(tmp_path: Path, line: str, words: str) -> None:
    async with Web(lambda headers: (line, DATA * 3)).open() as web:
        with pytest.raises(MachineError, match=words) as caught:
            await fetched(tmp_path, web)
        assert caught.value.kind is ErrorKind.INVALID
        assert not store.part_of(tmp_path, SHA).exists()
        web.answers = [whole]
        await fetched(tmp_path, web)
        assert store.part_of(tmp_path, SHA).read_bytes() == DATA


async def test_a_piece_from_elsewhere_is_not_put_in(tmp_path: Path) -> None:
    def elsewhere(headers: dict[str, str]) -> tuple[str, bytes]:
        return f"206 x\r\ncontent-range: bytes 7-{len(DATA) - 1}/{len(DATA)}\r\ncontent-length: 5", b"12345"

    async with Web(cut(2_000_000), elsewhere, whole).open() as web:
        with pytest.raises(MachineError):
            await fetched(tmp_path, web)
        with pytest.raises(MachineError, match="status 206"):
            await fetched(tmp_path, web)
        await fetched(tmp_path, web)
        assert "range" not in web.asked[-1]
        assert store.part_of(tmp_path, SHA).read_bytes() == DATA


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status("404 Not Found", b'{"error": "there is no package"}'), "404: .*there is no package"),
        (status("403 Forbidden"), "status 403"),
        (status("206 x"), "status 206"),
        (status("302 Found\r\nlocation: http://elsewhere.test/"), "status 302"),
        (lambda headers: ("200 OK\r\ncontent-length: x", b""), "cannot be read"),
    ],
)
async def test_other_answers_are_reported(tmp_path: Path, answer: Answer, words: str) -> None:
    async with Web(answer).open() as web:
        with pytest.raises(MachineError, match=words) as caught:
            await fetched(tmp_path, web)
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_no_listener(tmp_path: Path) -> None:
    web = Web(whole)
    async with web.open():
        pass
    with pytest.raises(MachineError, match="cannot be read") as caught:
        await fetched(tmp_path, web)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


class FullPart(IncompleteDownload):
    """A part on a disk with little or no room."""

    free = RESERVE - 1

    def free_space(self) -> int:
        return self.free

    def write(self, data: bytes, at: int) -> None:
        super().write(data[:10], at)
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("free", "words"), [(RESERVE, "MiB free, but the download needs 5 MiB"), (10**12, "is full")])
async def test_a_disk_without_room(tmp_path: Path, free: int, words: str) -> None:
    part = FullPart(tmp_path / "part")
    part.free = free
    worker = Worker("test")
    async with Web(whole).open() as web, worker.opened():
        with pytest.raises(MachineError, match=words) as caught:
            await download(
                DownloadSource.of(web.url, ()), part, worker, Expected(SHA, len(DATA)), progress=lambda there: None
            )
        assert caught.value.kind is ErrorKind.EXHAUSTED
        assert not part.path.exists()
