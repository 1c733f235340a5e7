"""The services that a machine has without an entry in its document."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from schema.document import MachineDocument, default_services

_MOVABLE: Final = ("arm", "gantry", "gripper")
"""Components that the motion service can move, or that are mounted on one."""
_ROVER: Final = frozenset({"base", "movement_sensor"})
"""Components with which it can drive to a position."""


def with_defaults(document: MachineDocument) -> MachineDocument:
    """Return the document with the default services, if it has a component that they can move.

    They cost nothing on other machines, on which every call of theirs would be an error.
    """
    kinds = {entry.api.subtype for entry in document.components}
    if kinds.isdisjoint(_MOVABLE) and not kinds >= _ROVER:
        return document
    added = default_services(document)
    return replace(document, services=document.services + added) if added else document
