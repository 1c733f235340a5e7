"""Fuzz archives of strangers: `python -m tests.fuzz.fuzz_archives [CORPUS]` with atheris installed.

Without atheris, `python -m tests.fuzz.fuzz_archives --seconds N` generates archives for N seconds: tar in its formats,
with mutations, compressed once or several times, in each other, and zip.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from support.foreign.removal import remove
from support.foreign.stream import BadArchiveError
from support.foreign.tar import Bounds
from support.foreign.unpacking import unpack

BLOCK = 512
BOUNDS = Bounds(entries=200, size=1 << 20, depth=20)
MOST = 5.0  # seconds of processor time for an archive
KINDS = b"01234567xgLKS\0"
NAMES = (
    b"a",
    b"b",
    b"a/b",
    b"./a",
    b"..",
    b"../x",
    b"/x",
    b"a/../b",
    b"d/" * 30 + b"f",
    b"n" * 300,
    b"a\0b",
    b"",
    b".",
)
PACKERS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)


def _header(name: bytes, kind: bytes, size: bytes, target: bytes) -> bytes:
    block = bytearray(BLOCK)
    fields = ((0, name[:100]), (100, b"0000755\0"), (124, size[:12]), (148, b" " * 8), (156, kind), (157, target[:100]))
    for at, field in fields:
        block[at : at + len(field)] = field
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def generated(chance: random.Random, depth: int = 0) -> bytes:
    """Return an archive that is often almost right. Its files can be archives, up to three deep."""
    parts = []
    for _ in range(chance.randrange(12)):
        kind = bytes([chance.choice(KINDS)])
        name, target = chance.choice(NAMES), chance.choice(NAMES)
        content = bytes(chance.choice((0, 1, 511, 512, 513)))
        if kind in b"xg":
            key = chance.choice((b"path", b"linkpath", b"size", b"GNU.sparse.major", b"comment"))
            value = chance.choice((name, b"-1", b"99999999999999999999", b"7", b"q" * 5000))
            record = b" %s=%s\n" % (key, value)
            length = len(record) + len(str(len(record) + 2))
            content = b"%d%s" % (chance.choice((length, length, length, length + 1, 0, 10**7)), record)
        elif kind in b"LK":
            content = name + b"\0"
        elif depth < 3 and chance.random() < 0.1:
            content = generated(chance, depth + 1)
        odd = (b"-0000000777\0", b"\xff" * 12, b"\x80" + b"\xff" * 11, b"77777777777\0", b"garbage\0")
        size = chance.choice(odd) if chance.random() < 0.1 else b"%011o\0" % len(content)
        parts.append(_header(name, kind, size, target) + content + bytes(-len(content) % BLOCK))
    data = bytearray(b"".join(parts) + bytes(BLOCK * chance.choice((0, 1, 2, 20, 3000))))
    for _ in range(chance.choice((0, 0, 1, 5)) if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.1:
        del data[chance.randrange(len(data) + 1) :]
    if chance.random() < 0.05:
        with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.tar", bytes(data))
        data = bytearray(buffer.getvalue())
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        data = bytearray(chance.choice(PACKERS)(bytes(data)))
    if chance.random() < 0.2 and data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1:
        data += chance.choice((b"x", bytes(1000), bytes(data)))
    return bytes(data)


SEEDS = tuple(generated(random.Random(number)) for number in range(40))


def run_input(data: bytes) -> None:
    """Check that nothing but BadArchiveError is raised, and that nothing leads, or lies, outside."""
    place = Path(tempfile.mkdtemp(prefix="fuzz-archives-"))
    try:
        (place / "secret").touch()
        begin = time.process_time()
        try:
            unpack(io.BytesIO(data), place / "out", BOUNDS)
        except BadArchiveError:
            complete = False
        else:
            complete = True
        assert time.process_time() - begin < MOST
        assert {path.name for path in place.iterdir()} <= {"secret", "out"}
        assert (place / "secret").stat().st_nlink == 1
        if (place / "out").exists():
            _check(place / "out", links=complete)
        assert remove(place / "out").complete
    finally:
        shutil.rmtree(place)


def _check(out: Path, *, links: bool) -> None:
    root, count, size = out.resolve(), 0, 0
    for folder, folders, files in os.walk(out):
        count += len(folders) + len(files)
        for path in (Path(folder, name) for name in (*folders, *files)):
            if not path.is_symlink():
                size += path.stat().st_size if path.is_file() else 0
            elif links:
                try:
                    assert path.resolve().is_relative_to(root), path
                except RuntimeError:
                    continue  # links that lead to each other
    assert count <= 2 * BOUNDS.entries
    assert size <= 2 * BOUNDS.size  # a hard link counts again here


def main() -> None:
    if "--seconds" in sys.argv:
        end, number = time.monotonic() + float(sys.argv[sys.argv.index("--seconds") + 1]), 0
        begin = time.time_ns()
        while time.monotonic() < end:
            data = generated(random.Random(begin + number))
            try:
                run_input(data)
            except BaseException:
                print(f"the archive of seed {begin + number} fails: generated(random.Random({begin + number}))")
                raise
            number += 1
        print(f"{number} archives")
        return
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
