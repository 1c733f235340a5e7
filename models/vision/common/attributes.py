"""Attributes of `common`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from schema import Attributes


class SeeingConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of every vision service."""

    camera_name: str = ""  # the camera of calls that do not name a camera

    def uses(self) -> Iterable[str]:
        """Use the default camera if present. Other cameras are looked up when a call names them."""
        return (self.camera_name,) if self.camera_name else ()
