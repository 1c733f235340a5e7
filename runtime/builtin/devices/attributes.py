"""What the configurations of serial and USB devices have in common."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
import trio

from catalogue.devices.attributes import SerialAttributes
from runtime.resource import Resource


@asynccontextmanager
async def opened(config: SerialAttributes, resource: Resource) -> AsyncIterator[trio.abc.Stream]:
    """The port, for `resource` alone; HalError (busy) names which other resource has it."""
    # Whatever link a path goes by; a device named by its identity is known by that.
    thing = os.path.realpath(config.path) if config.path else str(config.port())  # noqa: ASYNC240 - answers at once
    with resource.reserve(f"serial port {thing}"):
        async with resource.hardware.serial(config.port(), config.settings()) as port:
            _warn(config.path, resource.log)
            yield port


def _warn(path: str, log: structlog.stdlib.BoundLogger) -> None:
    """Say so if the path will mean another device one day."""
    from hal.linux.serial_ports import is_stable, serial_ports

    if path and not is_stable(path):
        best = next((port.best for port in serial_ports() if port.path == path), path)
        log.warning(
            "the port's number changes when devices are plugged in another order",
            path=path,
            remedy=f"use {best}" if best != path else "use a path under /dev/serial/by-id",
        )
