"""Decision of the provisioning machine: which wifi networks to join, and whether the hotspot runs. Pure."""

from __future__ import annotations

import msgspec


class NetworkDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What the provisioning machine wants of the radios. Wired networks need no decision: they are always used.

    A trial needs no field: while networks are on trial, the settings contain them. After a failed trial, the settings
    contain the former networks again.
    """

    join: dict[str, str] = {}
    """By interface: label of the wifi network that is to be joined. Interfaces that are not here join none."""
    hotspot: str = ""
    """Interface on which the hotspot runs; empty means none."""
