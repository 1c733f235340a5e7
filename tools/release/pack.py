"""The release file: a shell script with the identity of the release, and a tar.xz of the tree of files.

The same tree gives the same bytes: members are sorted, and have no owner and a fixed time.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from uplink.releases import Custom, Header

SCRIPT: Final = Path(__file__).with_name("header.sh")
"""Template of the shell script."""
TIME: Final = 315_532_800
"""Modification time of all members: 1980-01-01, the earliest that a zip archive can express."""
PRESET: Final = 6
"""Preset of xz: unpacking needs 9 MiB of memory. Preset 9 saves 3 % and needs 65 MiB."""

_WIDTH: Final = 8  # digits reserved for the position of the archive, which is part of the script before it


class Packed(NamedTuple):
    """A release file."""

    path: Path
    size: int
    unpacked: int  # bytes of all files
    sha256: str


def file_name(header: Header) -> str:
    """Return the name of a release file, such as `machine-server-v1.2.3-aarch64`."""
    return f"{header.program}-v{header.version}-{header.platform.rpartition('/')[2]}"


def script(header: Header, sha256: str) -> bytes:
    """Return the shell script for an archive with this hash. ValueError if the header is not one of a release."""
    Custom(header.program, header.version, header.platform)
    identity = json.dumps({name: getattr(header, name) for name in Header.__struct_fields__})
    values = {"@HEADER@": identity, "@PROGRAM@": header.program, "@SHA256@": sha256}
    text = SCRIPT.read_text("ascii")
    for name, value in values.items():
        text = text.replace(name, value)
    begin = len(text) - len("@BEGIN@") + _WIDTH + 1
    return text.replace("@BEGIN@", str(begin).ljust(_WIDTH)).encode("ascii")


def pack(header: Header, tree: Path, run: Path, folder: Path) -> Packed:
    """Write the release file of a tree, to which `run` is added, into `folder`. Replaces an older file."""
    payload, unpacked = archive(tree, run)
    content = script(header, hashlib.sha256(payload).hexdigest()) + payload
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(header)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(path)
    return Packed(path, len(content), unpacked, hashlib.sha256(content).hexdigest())


def archive(tree: Path, run: Path) -> tuple[bytes, int]:
    """Return the tar.xz of a tree with the program `run`, and the number of bytes in its files."""
    if not os.access(run, os.X_OK):
        raise ValueError(f"{run} is not executable")
    files = [(path, str(path.relative_to(tree))) for path in sorted(tree.rglob("*"))]
    buffer, unpacked = _Compressed(), 0
    with tarfile.open(fileobj=buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for path, name in [*files, (run, "run")]:
            member = tar.gettarinfo(path, name)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = TIME
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            unpacked += member.size
            if member.isreg():
                with path.open("rb") as content:
                    tar.addfile(member, content)
            else:
                tar.addfile(member)
    return buffer.finish(), unpacked


class _Compressed:
    """A file that compresses what is written to it."""

    def __init__(self) -> None:
        self._compressor = lzma.LZMACompressor(lzma.FORMAT_XZ, preset=PRESET)
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(self._compressor.compress(data))
        return len(data)

    def finish(self) -> bytes:
        return b"".join((*self._parts, self._compressor.flush()))
