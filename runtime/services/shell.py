"""Shell service: a terminal on the machine, and files to and from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, ClassVar

from runtime.resource import Extra, Service
from schema.names import API


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """What a program has written; `eof` in the last message."""

    data_out: str = ""
    data_err: str = ""
    eof: bool = False


class CopySource(IntEnum):
    """What is copied, and so where it goes: see `ShellService.copy_files_to_machine`."""

    UNSPECIFIED = 0
    SINGLE_FILE = 1
    SINGLE_DIRECTORY = 2
    MULTIPLE_FILES = 3


@dataclass(frozen=True, slots=True)
class FileData:
    """A piece of a file; the first one of each file has its name, size and kind, the last one `eof`."""

    name: str = ""  # relative, with slashes
    size: int = 0  # bytes
    is_dir: bool = False
    data: bytes = b""
    eof: bool = False
    mod_time: datetime | None = None  # if it is to be kept
    mode: int | None = None  # permission bits, if they are to be kept


@dataclass(frozen=True, slots=True)
class CopyMetadata:
    """What will be sent."""

    source_type: CopySource = CopySource.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class CopyMessage:
    """One reply of `copy_files_from_machine`: first the metadata, then pieces of files."""

    metadata: CopyMetadata | None = None
    file_data: FileData | None = None


class ShellService(Service):
    """Whoever may call it may do on the machine what machine-server may."""

    API: ClassVar[API] = API("rdk", "service", "shell")

    def shell(self, data_in: AsyncIterator[Any], *, extra: Extra = None) -> AsyncGenerator[ShellOutput, None]:
        """Run a shell on a terminal of its own, or the program of `extra`, until it ends or the call does.

        `data_in` is what is typed: text, and mappings such as `{"message": "window-change", "cols": 80, "rows": 24}`.
        """
        raise NotImplementedError

    def copy_files_to_machine(
        self,
        files: AsyncIterator[FileData],
        source_type: CopySource,
        destination: str,
        preserve: bool = False,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[bool, None]:
        """Write files; yields once after each. With `preserve` modes and times are those of the source.

        A file goes to `destination`, or into it if that is a directory; a directory likewise; several go into it.
        """
        raise NotImplementedError

    def copy_files_from_machine(
        self,
        paths: Sequence[str],
        acks: AsyncIterator[bool],
        allow_recursion: bool = False,
        preserve: bool = False,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[CopyMessage, None]:
        """Send files, each after the one before it was acknowledged; a directory only with `allow_recursion`."""
        raise NotImplementedError
