"""Decision of provisioning: what the wifi interfaces are used for. Pure."""

from __future__ import annotations

import msgspec


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Use of the wifi interfaces. Wired networks need no decision: they are used whenever there is a cable."""

    join: dict[str, str] = {}
    """By interface: label of the network to join."""
    hotspot: str = ""
    """Interface on whose radio the hotspot runs; empty means none."""
