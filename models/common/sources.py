"""Resources of the same API that another one combines, of which some may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from engine import Resource
from schema import ErrorKind, MachineError

Source = TypeVar("Source", bound=Resource)


def ready_sources(resource: Resource, base: type[Source], names: Sequence[str]) -> dict[str, Source]:
    """Return those of the named dependencies of `resource` that are ready, by name; log the others.

    Raises PRECONDITION if none is ready.
    """
    ready: dict[str, Source] = {}
    for name in names:
        try:
            ready[name] = resource.dependency(base, name)
        except MachineError:
            continue
    missing = [name for name in names if name not in ready]
    if not ready:
        raise MachineError(
            f"none of {', '.join(names)} is ready",
            kind=ErrorKind.PRECONDITION,
            remedy=f"configure each as a {base.API.subtype}; their own states say why they are not ready",
        )
    if missing:
        resource.log.warning("works without those that are not ready", missing=", ".join(missing))
    return ready
