"""Shell service: opens a terminal on the machine and copies files to and from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, ClassVar

from engine.resource import Extra, Service
from schema import API


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """Output of a program; `eof` is set in the last message."""

    data_out: str = ""
    data_err: str = ""
    eof: bool = False


class CopySource(IntEnum):
    """Kind of source, which decides the destination: see `ShellService.copy_files_to_machine`."""

    UNSPECIFIED = 0
    SINGLE_FILE = 1
    SINGLE_DIRECTORY = 2
    MULTIPLE_FILES = 3


@dataclass(frozen=True, slots=True)
class FileData:
    """A piece of a file; the first piece of each file has its name, size and kind, the last piece has `eof` set."""

    name: str = ""  # relative, with slashes
    size: int = 0  # bytes
    is_dir: bool = False
    data: bytes = b""
    eof: bool = False
    mod_time: datetime | None = None  # set if it is preserved
    mode: int | None = None  # permission bits, set if they are preserved


@dataclass(frozen=True, slots=True)
class CopyMetadata:
    """Description of the files that follow."""

    source_type: CopySource = CopySource.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class CopyMessage:
    """A reply of `copy_files_from_machine`: first the metadata, then pieces of files."""

    metadata: CopyMetadata | None = None
    file_data: FileData | None = None


class ShellService(Service):
    """A service that gives its callers all permissions of machine-server on the machine."""

    API: ClassVar[API] = API("rdk", "service", "shell")

    def shell(self, data_in: AsyncIterator[Any], *, extra: Extra = None) -> AsyncGenerator[ShellOutput, None]:
        """Run a shell, or the program in `extra`, in a new terminal until it exits or the call ends.

        `data_in` is the input: text, and mappings such as `{"message": "window-change", "cols": 80, "rows": 24}`.
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
        """Write files, and yield after each. With `preserve`, modes and times are those of the source.

        A single file or directory is written to `destination`, or into it if it is an existing directory; several files
        are written into it.
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
        """Send files, each after the previous one is acknowledged; directories require `allow_recursion`."""
        raise NotImplementedError
