"""The services that a machine has without an entry in its document."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from schema.document import MachineDocument, default_services

_MOVABLE: Final = ("arm", "gantry", "gripper")
"""Components that the motion service can move, or that are mounted on one."""


def with_defaults(document: MachineDocument) -> MachineDocument:
    """Return the document with the default services, if it has a component that they can move.

    They cost nothing on other machines, on which every call of theirs would be an error.
    """
    if not any(entry.api.subtype in _MOVABLE for entry in document.components):
        return document
    added = default_services(document)
    return replace(document, services=document.services + added) if added else document
