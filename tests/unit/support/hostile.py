"""The smallest archives that harm a reader that trusts them, and folders that harm a remover."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

MIB = 1 << 20
ZERO = bytes(512)


def header(name: bytes, kind: bytes = b"0", size: int | bytes = 0, target: bytes = b"", mode: int = 0o755) -> bytes:
    """Return a header of the format ustar with a right checksum."""
    length = size if isinstance(size, bytes) else b"%011o\0" % size
    block = bytearray(ZERO)
    for at, field in ((0, name[:100]), (100, b"%07o\0" % mode), (124, length), (148, b" " * 8), (156, kind)):
        block[at : at + len(field)] = field
    block[157 : 157 + len(target)] = target
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def file(name: bytes, content: bytes = b"", mode: int = 0o755) -> bytes:
    return header(name, size=len(content), mode=mode) + content + bytes(-len(content) % 512)


def extended(records: dict[bytes, bytes], kind: bytes = b"x") -> bytes:
    content = b""
    for key, value in records.items():
        length = len(key) + len(value) + 3
        length += len(str(length + len(str(length))))
        content += b"%d %s=%s\n" % (length, key, value)
    return header(b"x", kind, len(content)) + content + bytes(-len(content) % 512)


def members(*names: str) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    return output.getvalue().rstrip(b"\0") + bytes(-len(output.getvalue().rstrip(b"\0")) % 512)


def squeezed(parts: Iterable[bytes]) -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    return b"".join([*(packer.compress(part) for part in parts), packer.flush()])


def deep(levels: int, name: str = "d") -> bytes:
    return members("/".join([name] * levels) + "/f")


BAD: dict[str, Callable[[], Iterable[bytes]]] = {
    "folders 1,900 deep": lambda: [deep(1900)],
    "folder of 300 levels": lambda: [header(b"d/" * 49, b"5"), deep(300, "e")],
    "an extended header of 100 MiB": lambda: [
        header(b"x", b"x", 100 * MIB), b"%d path=" % (100 * MIB), *[bytes(MIB)] * 100,
    ],
    "a long name of 100 MiB": lambda: [header(b"x", b"L", 100 * MIB), *[b"a" * MIB] * 100],
    "10,000 extended headers in a row": lambda: [extended({b"comment": b"x"})] * 10_000,
    "a negative size in base 256": lambda: [header(b"a", size=b"\xff" * 12)] * 2,
    "a negative size": lambda: [header(b"a", size=b"-0000001000\0")] * 2,
    "a negative size in an extended header": lambda: [extended({b"size": b"-512"}), file(b"a")],
    "an immense size": lambda: [header(b"a", size=b"\x80" + b"\xff" * 11)],
    "200 MiB of zeros after the end": lambda: [file(b"a"), *[bytes(MIB)] * 200],
    "data after the end": lambda: [file(b"a"), ZERO * 2, b"hidden"],
    "a link that leads out once another is there": lambda: [
        header(b"out", b"2", target=b"d/e/../.."), header(b"d/e", b"2", target=b".."), file(b"d/f"),
    ],
    "a link out": lambda: [header(b"out", b"2", target=b"a/../../x"), file(b"a/b")],
    "an absolute link": lambda: [header(b"out", b"2", target=b"/etc")],
    "a file through a link": lambda: [header(b"out", b"2", target=b"."), file(b"out/evil", b"x")],
    "a hard link through a link": lambda: [header(b"l", b"2", target=b".."), header(b"h", b"1", target=b"l/secret")],
    "an absolute path": lambda: [file(b"/tmp/evil")],
    "a path that leads out": lambda: [file(b"a/../../evil")],
    "a zero byte in a name": lambda: [extended({b"path": b"a\0b"}), file(b"a")],
    "a device": lambda: [header(b"null", b"3")],
    "a damaged extended header": lambda: [header(b"x", b"x", 4), b"4 x\n".ljust(512, b"\0"), file(b"a")],
    "an extended header of length 0": lambda: [header(b"x", b"x", 5), b"0 a=\n".ljust(512, b"\0"), file(b"a")],
    "a sparse file": lambda: [extended({b"GNU.sparse.realsize": b"99999999999"}), file(b"a")],
    "a file truncated": lambda: [header(b"a", size=1000), b"x"],
    "a wrong checksum": lambda: [b"x" + file(b"a")[1:]],
    "nothing": list,
    "no archive": lambda: [b"hello " * 1000],
}  # fmt: skip
"""Archives that every reader refuses, uncompressed."""


def wide() -> Iterable[bytes]:
    """Return an archive of 900 files with 17,100 folders, which only their paths name."""
    return (file(b"/".join([b"a%d" % number] * 19) + b"/f") for number in range(900))


def pack(path: Path, parts: Iterable[bytes]) -> Path:
    """Write an archive, compressed with gzip as well as quickly possible."""
    with gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as output:
        for part in parts:
            output.write(part)
    return path


def dig(folder: Path, levels: int, *, mode: int = 0o700, files: int = 1) -> None:
    """Make a chain of folders that no path can name, with files in each, and these permissions."""
    folder.mkdir()
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 100, dir_fd=inner)
        outer, inner = inner, os.open("d" * 100, os.O_RDONLY, dir_fd=inner)
        for number in range(files):
            os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.fchmod(outer, mode)
        os.close(outer)
    os.fchmod(inner, mode)
    os.close(inner)
