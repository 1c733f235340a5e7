"""Names of the streams of cameras."""

from __future__ import annotations

from typing import Final

from runtime.engine.components.media.audio_in import AudioIn
from runtime.engine.components.media.camera import Camera
from runtime.engine.roster import Roster
from schema.decoding.report import did_you_mean
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName

COLON: Final = "+"
"""In place of the colons in the names of remotes' cameras, which session descriptions cannot contain."""


def stream_of(name: ResourceName) -> str:
    """Return the name of a camera's stream."""
    return name.short.replace(":", COLON)


def stream_names(roster: Roster) -> list[str]:
    """Return the names of the streams of all cameras that are ready, sorted."""
    return sorted(stream_of(name) for name in roster.hosts_of(Camera.API))


def camera_of(roster: Roster, stream: str) -> ResourceName:
    """Return the camera with a stream of this name; clients may also use the name of the camera.

    Raises MachineError: NOT_FOUND, UNAVAILABLE for a camera that is not ready, UNSUPPORTED for a microphone.
    """
    missing = None
    for name in dict.fromkeys((stream, stream.replace(COLON, ":"))):
        try:
            return roster.find(f"{Camera.API}/{name}").name
        except MachineError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            missing = error
    if f"{AudioIn.API}/{stream}" in roster.hosts:
        raise MachineError(
            f"{stream} is a microphone, and sound is not sent as a stream",
            kind=ErrorKind.UNSUPPORTED,
            remedy="call GetAudio",
        )
    raise MachineError(
        f"no camera {stream!r} is configured",
        kind=ErrorKind.NOT_FOUND,
        remedy=did_you_mean(stream, stream_names(roster)),
    ) from missing
