"""Attributes of `webgamepad`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class WebGamepadConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a gamepad in a browser."""

    disconnect_after_ms: Annotated[int, msgspec.Meta(ge=0)] = 0  # without an event, controls return to rest; 0: never
