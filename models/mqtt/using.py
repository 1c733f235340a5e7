"""Use of the machine's resources on behalf of a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from engine import Resource, ResourceAccess
from schema import ErrorKind, MachineError


@asynccontextmanager
async def used(door: ResourceAccess, name: str, log: Any) -> AsyncIterator[Resource]:
    """Yield the resource `name`. Any error of its driver is logged, and raised as a MachineError."""
    try:
        async with door.use() as resource:
            yield resource
    except MachineError:
        raise
    except Exception as error:
        log.error("a driver failed", resource=name, exc_info=error)
        raise MachineError(
            f"internal error of {name}: {type(error).__name__}",
            kind=ErrorKind.INTERNAL,
            remedy="the log of the machine has the reason",
        ) from error
