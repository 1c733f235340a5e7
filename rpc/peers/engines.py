"""Choice of the WebRTC engine: libraries are imported only when an engine is opened."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from rpc.peers.port import Engine
from schema import ErrorKind, MachineError

ENGINES: Final = ("rpc.peers.wrtc_engine",)
"""Modules with a function `open_engine`, the preferred one first."""

LIBRARIES: Final = (("wrtc",),)
"""Packages that each of these modules imports."""


def engine_installed() -> bool:
    """Return whether the packages of an engine are installed, without importing them."""
    return any(all(find_spec(name) is not None for name in names) for names in LIBRARIES)


@asynccontextmanager
async def open_engine(
    run_blocking: Callable[[Callable[[], ModuleType]], Awaitable[ModuleType]],
) -> AsyncIterator[Engine]:
    """Run the best engine that is installed until the block ends, then close its connections.

    `run_blocking` calls a function in a thread: the import takes a tenth of a second. Raises MachineError
    (UNSUPPORTED) if no engine is installed.
    """
    module = await run_blocking(load_engine)
    async with module.open_engine() as engine:
        yield engine


def load_engine(names: Sequence[str] = ENGINES) -> ModuleType:
    """Import and return the first of these modules that can be imported. Raises MachineError (UNSUPPORTED)."""
    reasons = []
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError as error:  # also a library that does not fit the system's C library
            reasons.append(str(error))
    raise MachineError(
        f"there is no WebRTC engine: {'; '.join(reasons)}",
        kind=ErrorKind.UNSUPPORTED,
        remedy="pip install 'machine-runtime[webrtc]'",
    )
