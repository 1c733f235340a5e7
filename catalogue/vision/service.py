"""Attributes that `runtime.builtin.vision.service` reads."""

from __future__ import annotations

from collections.abc import Iterable

from schema.attributes import Attributes


class SeeingConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of every vision service here."""

    camera_name: str = ""  # the camera it looks through when a call names none

    def uses(self) -> Iterable[str]:
        """Its own camera. Others, which calls may name, are looked up when they do."""
        return (self.camera_name,) if self.camera_name else ()
