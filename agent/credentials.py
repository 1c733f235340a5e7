"""The credentials of the machine: waiting for a file that can be used, and noticing that it changes."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from agent.launch.links import read as read_launch
from agent.layout import AGENT, Layout
from agent.updates import RELEASE
from schema import MachineError
from schema.document import Cloud, decode_document
from uplink import FileReading, FileSource

CREDENTIALS_LIMIT: Final = 300.0
"""Seconds until a release on trial must have read the credentials."""

_log = structlog.get_logger("agent")


class UsableCredentials(NamedTuple):
    """Credentials that can be used, and the content of their file."""

    cloud: Cloud
    data: bytes


async def usable_credentials(path: Path) -> AsyncGenerator[UsableCredentials, None]:
    """Yield the credentials in a file, and those after each change of it; log why a content cannot be used."""
    used = False
    async with FileSource(path).readings() as readings:
        async for reading in readings:
            cloud, problem = _cloud_of(reading)
            if cloud is not None and reading.data is not None:
                used = True
                yield UsableCredentials(cloud, reading.data)
            elif used:
                _log.warning("the credentials cannot be used; the former ones stay in use", problem=problem)
            else:
                _log.warning(
                    "the agent waits for credentials", file=str(path), problem=problem,
                    remedy="copy them from the machine's page in the cloud",
                )  # fmt: skip
    raise MachineError(f"changes of {path} cannot be watched", remedy="write the credentials and start the agent again")


def _cloud_of(reading: FileReading) -> tuple[Cloud | None, str]:
    if reading.data is None:
        return None, str(reading.problem)
    decoded = decode_document(reading.data)
    if decoded.document is None:
        return None, str(decoded.problems[0])
    cloud = decoded.document.cloud
    if cloud is None or not cloud.app_address:
        return None, "it has no `cloud.app_address`"
    return cloud, ""


def is_on_trial(layout: Layout) -> bool:
    """Return whether the release that runs is on trial. Blocks."""
    try:
        launch = read_launch(layout, AGENT)
    except OSError:
        return False
    return launch.on_trial and launch.run is not None and launch.run == os.environ.get(RELEASE)


def credentials_limit(layout: Layout, speed: float) -> float:
    """Return how long to wait for credentials, in seconds. Blocks.

    The release before one on trial had credentials. If this one cannot use them, nothing would ever end its trial,
    because it judges only itself: it must end, so that the launcher counts its starts.
    """
    return CREDENTIALS_LIMIT / speed if is_on_trial(layout) else math.inf
