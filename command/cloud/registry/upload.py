"""Upload of archives to the registry: packing, checking, sending in pieces."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from runtime.sdk import FILE, Meta, parse_meta
from schema import ConfigErrors, MachineError

PIECE: Final = 256 * 1024  # bytes per message
NATIVE: Final = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
"""First bytes of programs and libraries for Linux, Windows and macOS."""


async def pieces(file: BinaryIO, size: int, *, quiet: bool) -> AsyncIterator[bytes]:
    """Yield the content of a file in pieces, and show the progress on a terminal unless `quiet`."""
    show_progress = sys.stderr.isatty() and not quiet
    sent = 0
    while piece := file.read(PIECE):
        yield piece
        sent += len(piece)
        if show_progress:
            sys.stderr.write(f"\r{sent / 1024**2:.1f} of {size / 1024**2:.1f} MiB, {100 * sent // max(size, 1)} %")
            sys.stderr.flush()
    if show_progress:
        sys.stderr.write("\n")


@contextmanager
def module_archive(path: Path) -> Iterator[tuple[Meta, Path]]:
    """Yield the meta.json and the archive of a module: `path` itself, or a temporary archive of the folder `path`.

    Raises click.ClickException for a module that the registry or a machine would refuse, for example because a
    program is missing.
    """
    with tempfile.TemporaryDirectory(prefix="machine-upload-") as temporary_folder:
        try:
            if path.is_dir():
                from runtime.sdk import pack

                archive = Path(temporary_folder) / "module.tar.gz"
                meta, _ = pack(path, archive)
            else:
                archive = path
                meta = _meta_of(path, Path(temporary_folder) / "unpacked")
        except MachineError as error:
            raise click.ClickException(f"{path}: {error}") from None
        yield meta, archive


def native_file(archive: Path) -> str:
    """Return the name of a file with native code in the archive of a module; "" if there is none."""
    from runtime.programs import BOUNDS
    from support.foreign import Archive

    with archive.open("rb") as source:
        content = Archive(source, BOUNDS)
        for member in content:
            if content.read(4).startswith(NATIVE):
                return member.name.decode("utf-8", "replace")
    return ""


def _meta_of(archive: Path, folder: Path) -> Meta:
    from runtime.programs import read_meta, unpack_here

    unpack_here(archive, folder)
    read_meta(archive, folder)
    meta, report = parse_meta((folder / FILE).read_bytes())
    if meta is None:
        raise ConfigErrors(report.problems)
    return meta
