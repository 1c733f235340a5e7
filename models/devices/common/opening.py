"""Opening of configured serial ports."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
import trio

from engine import Resource
from models.devices.common.attributes import SerialAttributes


@asynccontextmanager
async def opened(config: SerialAttributes, resource: Resource) -> AsyncIterator[trio.abc.Stream]:
    """Open the port exclusively for `resource`. HalError (BUSY) names another resource that has it open."""
    # Symbolic links are resolved; a device configured by its identity is reserved by that.
    reserved_name = os.path.realpath(config.path) if config.path else str(config.port())  # noqa: ASYNC240 - answers at once
    with resource.reserve(f"serial port {reserved_name}"):
        async with resource.hardware.serial(config.port(), config.settings()) as port:
            _warn(config.path, resource.log)
            yield port


def _warn(path: str, log: structlog.stdlib.BoundLogger) -> None:
    """Log a warning if the path may refer to another device later."""
    from hal.inventory import is_stable, serial_ports

    if path and not is_stable(path):
        stable_path = next((port.best for port in serial_ports() if port.path == path), path)
        log.warning(
            "the path depends on the order in which devices are plugged in",
            path=path,
            remedy=f"use {stable_path}" if stable_path != path else "use a path under /dev/serial/by-id",
        )
