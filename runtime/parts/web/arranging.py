"""The arrangement of the cards of the page Control, in a file of the machine, for everyone who opens its page."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final

import structlog
import trio
from starlette.requests import Request
from starlette.responses import Response

from rpc.pages import SIZE, arrangement_of
from runtime.parts.web.forgery import check_origin
from schema import ErrorKind, MachineError
from support import Worker
from support.files import private

FILE: Final = "cards.json"

_log = structlog.stdlib.get_logger("rdk.web")


class Arranging:
    """Reads and writes the arrangement. `folder` returns that of the machine's files, RuntimeError if it has none."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._turn = trio.Lock()

    async def cards(self) -> str:
        """Return the arrangement as JSON; empty if there is none that can be read."""
        try:
            return await self._run(lambda: _read(self._folder() / FILE))
        except FileNotFoundError:
            return ""
        except (OSError, RuntimeError, MachineError) as error:
            _log.warning("the arrangement of cards was not read", reason=str(error), remedy="arrange the cards again")
            return ""

    async def arrange(self, request: Request) -> Response:
        """Store the arrangement that the body is. MachineError if it is not valid or cannot be stored."""
        check_origin(request)
        cards = arrangement_of(await _body(request))
        try:
            await self._run(lambda: _write(self._folder(), cards))
        except (OSError, RuntimeError) as error:
            raise MachineError(
                f"the arrangement was not saved: {error}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="make room on the disk of the machine, and set MACHINE_HOME if its user has no home",
            ) from None
        return Response(status_code=204)

    async def _run(self, function: Callable[[], str]) -> str:
        worker = Worker("arrangement")
        async with self._turn, worker.opened():
            return await worker.run(function)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return arrangement_of(file.read(SIZE + 1))


def _write(folder: Path, cards: str) -> str:
    """Replace the file as a whole, so that a reader never sees a part of it."""
    private.make_folder(folder)
    unfinished = folder / f".{FILE}"
    unfinished.write_text(cards, encoding="utf-8")
    os.replace(unfinished, folder / FILE)
    return cards


async def _body(request: Request) -> bytes:
    body = bytearray()
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > SIZE:
                break  # `arrangement_of` refuses it
    return bytes(body)
