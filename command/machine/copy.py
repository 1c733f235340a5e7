"""`machine cp`: copies files to and from the machine, with the same rules for destinations in both directions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog
import trio

from command.machine.shell import API, service_of
from engine import CopyMessage, CopySource, FileData, ShellService
from models.shell import files_from, files_to

if TYPE_CHECKING:
    from rpc.api import ApiClient


async def copy(
    client: ApiClient, service: str, sources: Sequence[str], destination: str, *, recursive: bool, preserve: bool
) -> None:
    """Copy files to the machine or from it. Paths on the machine begin with a colon."""
    on_machine = [source.startswith(":") for source in sources]
    if any(on_machine) != all(on_machine) or all(on_machine) == destination.startswith(":"):
        raise click.UsageError(
            "either the sources or the destination must be on the machine: begin paths of the machine with a colon"
        )
    name = await service_of(client, service)
    if all(on_machine):
        paths = [source[1:] or "." for source in sources]
        await download(client, name, paths, _local_path(destination), recursive=recursive, preserve=preserve)
    else:
        await upload(
            client,
            name,
            list(map(_local_path, sources)),
            destination[1:] or ".",
            recursive=recursive,
            preserve=preserve,
        )


async def upload(
    client: ApiClient, service: str, paths: Sequence[Path], destination: str, *, recursive: bool, preserve: bool
) -> None:
    """Send files, each after the machine has acknowledged the previous one."""
    acknowledge, acknowledgements = trio.open_memory_channel[bool](0)
    messages = files_from(paths, acknowledgements, recursive=recursive, preserve=preserve, log=structlog.get_logger())
    async with aclosing(messages):
        first = await anext(messages)
        assert first.metadata is not None
        acks = client.stream(
            API,
            service,
            "copy_files_to_machine",
            files=_Pieces(messages),
            source_type=int(first.metadata.source_type),
            destination=destination,
            preserve=preserve,
        )
        async with aclosing(acks), acknowledge:
            async for acknowledged in acks:
                await acknowledge.send(bool(acknowledged))


async def download(
    client: ApiClient, service: str, paths: Sequence[str], destination: Path, *, recursive: bool, preserve: bool
) -> None:
    """Receive files, and acknowledge each one after it is written."""
    acknowledge, acknowledgements = trio.open_memory_channel[bool](1)
    messages = client.stream_as(
        ShellService,
        service,
        "copy_files_from_machine",
        paths=list(paths),
        acks=acknowledgements,
        allow_recursion=recursive,
        preserve=preserve,
    )
    async with aclosing(messages):
        first: CopyMessage = await anext(messages)
        kind = first.metadata.source_type if first.metadata is not None else CopySource.MULTIPLE_FILES
        written = files_to(destination, kind, _Pieces(messages), preserve=preserve)
        async with aclosing(written), acknowledge:
            async for _ in written:
                await acknowledge.send(True)


def _local_path(path: str) -> Path:
    return Path(path).absolute()


class _Pieces:
    """The pieces of files in a stream of messages."""

    def __init__(self, messages: AsyncIterator[Any]) -> None:
        self._messages = messages

    def __aiter__(self) -> AsyncIterator[FileData]:
        return self

    async def __anext__(self) -> FileData:
        while True:
            piece: FileData | None = (await anext(self._messages)).file_data
            if piece is not None:
                return piece
