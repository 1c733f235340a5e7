"""Attributes of `mux`. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from schema import Attributes


class MuxInputControllerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of several input controllers as one."""

    sources: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # names of the input controllers

    def uses(self) -> Iterable[str]:
        """Use those of the input controllers that are present."""
        return self.sources
