"""Names of the streams of cameras and microphones."""

from __future__ import annotations

from typing import Final

from engine import AudioIn, Camera, Roster
from schema import ErrorKind, MachineError, ResourceName
from schema.decoding import did_you_mean

COLON: Final = "+"
"""In place of the colons in the names of remotes' resources, which session descriptions cannot contain."""

STREAMED: Final = (Camera.API, AudioIn.API)


def stream_of(name: ResourceName) -> str:
    """Return the name of the stream of a camera or microphone."""
    return name.short.replace(":", COLON)


def stream_names(roster: Roster) -> list[str]:
    """Return the names of the streams of all cameras and microphones that are ready, sorted."""
    return sorted(stream_of(name) for api in STREAMED for name in roster.hosts_of(api))


def is_sound(name: str) -> bool:
    """Return whether a resource, by its full name, is a microphone."""
    return name.startswith(f"{AudioIn.API}/")


def source_of(roster: Roster, stream: str) -> ResourceName:
    """Return the camera or microphone with a stream of this name; clients may also use the name of the resource.

    Raises MachineError: NOT_FOUND, or UNAVAILABLE for a resource that is not ready.
    """
    missing = None
    for api in STREAMED:
        for name in dict.fromkeys((stream, stream.replace(COLON, ":"))):
            try:
                return roster.find(f"{api}/{name}").name
            except MachineError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
                missing = error
    raise MachineError(
        f"no camera or microphone {stream!r} is configured",
        kind=ErrorKind.NOT_FOUND,
        remedy=did_you_mean(stream, stream_names(roster)),
    ) from missing


def camera_of(roster: Roster, stream: str) -> ResourceName:
    """Return the camera with a stream of this name, as `source_of`; UNSUPPORTED for a microphone."""
    name = source_of(roster, stream)
    if is_sound(str(name)):
        raise MachineError(
            f"{stream} is a microphone, whose stream has no size",
            kind=ErrorKind.UNSUPPORTED,
            remedy="use the name of a camera",
        )
    return name
