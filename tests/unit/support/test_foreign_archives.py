"""The reader of foreign archives: what is unpacked, what is refused, and what refusing it costs."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from support.foreign import child, stream
from support.foreign.apart import unpack_apart, unpack_apart_blocking
from support.foreign.removal import remove
from support.foreign.stream import BadArchiveError, NoSpaceError
from support.foreign.tar import Archive, Bounds, MemberKind
from support.foreign.unpacking import unpack
from tests.unit.support.hostile import BAD, MIB, ZERO, extended, file, header, pack, squeezed, wide

BOUNDS = Bounds(entries=10_000, size=64 * MIB, cpu=20, wall=60)
PACKERS = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
           "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
           "two streams": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:])}  # fmt: skip


def tree(root: Path) -> dict[str, bytes | str | None]:
    """Return everything below a folder: content of files, target of links, None for folders."""
    listed: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            listed[name] = os.readlink(path)
        else:
            listed[name] = None if path.is_dir() else path.read_bytes()
    return listed


GOOD = [
    header(b"./", b"5"), file(b"./a/b/c", b"hello"), header(b"a/", b"5"), file(b"a/run", b"x", 0o755),
    file(b"a/data", b"y" * 1000, 0o600), file(b"twice", b"1"), file(b"twice", b"2"),
    header(b"link", b"2", target=b"a/../a/run"), header(b"hard", b"1", target=b"./a/run"),
    header(b"around", b"2", target=b"around"), header(b"nowhere", b"2", target=b"none/such"),
    extended({b"path": b"long/" + b"n" * 200, b"mtime": b"1.5"}), file(b"cut", b"z"),
    header(b"@", b"L", 151), b"m" * 150 + bytes(362), file(b"cut", b"w"), extended({b"path": b"x"}, b"g"),
    file(b"last"),
]  # fmt: skip


@pytest.mark.parametrize("packer", PACKERS)
def test_good_content_is_unpacked(tmp_path: Path, packer: str) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(PACKERS[packer](b"".join(GOOD) + ZERO * 20))
    unpack_apart_blocking(archive, tmp_path / "out", BOUNDS)
    assert tree(tmp_path / "out") == {
        "a": None, "a/b": None, "a/b/c": b"hello", "a/run": b"x", "a/data": b"y" * 1000, "twice": b"2",
        "link": "a/../a/run", "hard": b"x", "around": "around", "nowhere": "none/such", "long": None,
        "long/" + "n" * 200: b"z", "m" * 150: b"w", "last": b"",
    }  # fmt: skip
    modes = {name: stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) for name in ("a", "a/run", "a/data")}
    assert modes == {"a": 0o755, "a/run": 0o755, "a/data": 0o644}
    assert (tmp_path / "out/hard").stat().st_nlink == 2


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_other_programs(tmp_path: Path, format_: int) -> None:
    source = tmp_path / "source"
    for name in ("short", "f" * 120, "ü" * 40, "/".join(["g" * 60] * 3)):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode() * 99)
    with tarfile.open(tmp_path / "a", "w:gz", format=format_) as tar:
        for path in sorted(source.rglob("*")):
            if format_ != tarfile.USTAR_FORMAT or len(path.name) < 100:
                tar.add(path, path.relative_to(source), recursive=False)
    subprocess.run(["tar", "cJf", tmp_path / "b", "-C", source, "."], check=True)
    unpack_apart_blocking(tmp_path / "a", tmp_path / "from-a", BOUNDS)
    unpack_apart_blocking(tmp_path / "b", tmp_path / "from-b", BOUNDS)
    assert tree(tmp_path / "from-b") == tree(source)
    assert tree(tmp_path / "from-a").items() <= tree(source).items()


MEASURED = f"""
import json, resource, sys
from pathlib import Path
from support.foreign.apart import unpack_apart_blocking
from support.foreign.tar import Bounds
try:
    unpack_apart_blocking(Path(sys.argv[1]), Path(sys.argv[2]), {BOUNDS!r})
    refused = ""
except Exception as error:
    refused = type(error).__name__
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([refused, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


@pytest.mark.parametrize("case", [*BAD, "wide"])
def test_bad_content_is_refused_cheaply(tmp_path: Path, case: str) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = pack(tmp_path / "archive.tar.gz", wide() if case == "wide" else BAD[case]())
    inner = tmp_path / "inner"
    inner.mkdir()
    free = os.statvfs(tmp_path).f_ffree
    # In a small process: the memory of a child counts that of its parent until it has become another program.
    done = subprocess.run([sys.executable, "-c", MEASURED, archive, inner / "out"], capture_output=True, check=True)
    refused, seconds, memory = json.loads(done.stdout)
    assert refused == "BadArchiveError"
    assert seconds < 5, "of processor time"
    assert memory < 200 * 1024, "KiB"
    assert free - os.statvfs(tmp_path).f_ffree < 2 * BOUNDS.entries + 1000, "inodes"
    assert remove(inner).complete
    assert tree(tmp_path).keys() == {"secret", "archive.tar.gz"}
    assert (tmp_path / "secret").stat().st_nlink == 1


@pytest.mark.parametrize(
    ("parts", "bounds", "words"),
    [
        ([file(b"a", bytes(1001))], Bounds(10, 1000), "more than 0 MiB"),
        ([file(b"%d" % number) for number in range(11)], Bounds(10, 1000), "more than 10 files"),
        ([file(b"a/b/c/d/e")], Bounds(3, 1000), "more than 3 folders"),
        ([file(b"a/b/c/d")], Bounds(10, 1000, depth=3), "more than 3 folders"),
        ([header(b"a", b"2", target=b"b")], Bounds(10, 1000, links=False), "neither a file nor a folder"),
        ([header(b"a", b"x", 65_537)], BOUNDS, "an extended header has 65537 bytes"),
    ],
)
def test_bounds(tmp_path: Path, parts: list[bytes], bounds: Bounds, words: str) -> None:
    with pytest.raises(BadArchiveError, match=words):
        unpack(io.BytesIO(b"".join(parts) + ZERO * 2), tmp_path / "out", bounds)


def test_the_disk_keeps_its_reserve(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(file(b"a", b"x"))
    with pytest.raises(NoSpaceError) as caught:
        unpack_apart_blocking(tmp_path / "a", tmp_path / "out", Bounds(10, 1000, reserve=1 << 60))
    assert caught.value.needed == (1 << 60) + 1


def test_other_errors_of_the_disk_are_not_those_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(file(b"a", b"x"))
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError):
        unpack_apart_blocking(tmp_path / "a", tmp_path / "out", BOUNDS)
    with pytest.raises(FileNotFoundError):
        unpack_apart_blocking(tmp_path / "none", tmp_path / "other", BOUNDS)


def test_compressed_streams_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_STREAMS", 3)
    with pytest.raises(BadArchiveError, match="streams"):
        unpack(io.BytesIO(gzip.compress(file(b"a")) + gzip.compress(b"") * 3), tmp_path / "a", BOUNDS)
    with pytest.raises(BadArchiveError, match="zeros"):
        unpack(io.BytesIO(gzip.compress(file(b"a")) + bytes(2 * MIB)), tmp_path / "b", BOUNDS)
    with pytest.raises(BadArchiveError, match="follows"):
        unpack(io.BytesIO(gzip.compress(file(b"a")) + b"x"), tmp_path / "c", BOUNDS)
    parts = [extended({b"comment": bytes(60_000)}) + file(b"%d" % number) for number in range(100)]
    with pytest.raises(BadArchiveError, match="when it is unpacked"):
        unpack(io.BytesIO(squeezed(parts)), tmp_path / "d", Bounds(100, 100))


async def test_a_child_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "archive")  # opening it waits
    with trio.move_on_after(0.5):
        await unpack_apart(tmp_path / "archive", tmp_path / "out", BOUNDS)
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadArchiveError, match=r"or 0\.5 s"):
        await unpack_apart(tmp_path / "archive", tmp_path / "out", Bounds(1, 1, wall=0.5))


async def test_the_event_loop_stays_free(tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive.tar.gz", BAD["an extended header of 100 MiB"]())
    longest = 0.0
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            nonlocal longest
            while True:
                begin = time.thread_time()
                await trio.lowlevel.checkpoint()
                longest = max(longest, time.thread_time() - begin)
                await trio.sleep(0.001)

        nursery.start_soon(watch)
        with pytest.raises(BadArchiveError, match="extended header"):
            await unpack_apart(archive, tmp_path / "out", BOUNDS)
        nursery.cancel_scope.cancel()
    assert longest < 0.02


def test_too_much_processor_time_or_memory(tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.tar.gz", [file(b"a", b"x") * 1000] * 100)
    with pytest.raises(BadArchiveError, match="takes more than 1 s"):
        unpack_apart_blocking(archive, tmp_path / "out", Bounds(200_000, 8 << 30, cpu=1, wall=60))
    remove(tmp_path / "out")
    (tmp_path / "b").write_bytes(lzma.compress(file(b"a"), preset=9))
    with pytest.raises(BadArchiveError, match=r"memory|unexpectedly|damaged"):
        unpack_apart_blocking(tmp_path / "b", tmp_path / "out", Bounds(10, 1000, memory=40 << 20))


def test_an_archive_is_read_without_unpacking() -> None:
    archive = Archive(io.BytesIO(file(b"a", b"hello") + header(b"d", b"5") + file(b"b", b"x")), BOUNDS)
    listed = [(member.name, member.kind, archive.read(3)) for member in archive]
    assert listed == [(b"a", MemberKind.FILE, b"hel"), (b"d", MemberKind.FOLDER, b""), (b"b", MemberKind.FILE, b"x")]
    assert 2 * Bounds(1, 1).depth + 20 < child.DESCRIPTORS


@settings(max_examples=300)
@given(data=st.data())
def test_no_content_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(b"".join(GOOD) + ZERO * 2)
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    for at in range(0, len(content) - 511, 512):  # right checksums, so that the rest is read
        if content[at + 257 : at + 262] == b"ustar":
            content[at + 148 : at + 156] = b" " * 8
            content[at + 148 : at + 156] = b"%06o\0 " % sum(content[at : at + 512])
    out = tmp_path_factory.mktemp("mutated") / "out"
    try:
        unpack(io.BytesIO(bytes(content)), out, BOUNDS)
    except BadArchiveError:
        pass
    for path in out.rglob("*"):
        try:
            assert path.resolve().is_relative_to(out.resolve())
        except RuntimeError:
            assert path.is_symlink(), "links that lead to each other"
    assert remove(out).complete
