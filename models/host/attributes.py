"""Attributes of `host`. Pure."""

from __future__ import annotations

from typing import Final

from schema import Attributes

GROUPS: Final = ("cpu", "memory", "disk", "network", "temperature", "uptime")


class HostSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the host sensor."""

    groups: tuple[str, ...] = GROUPS  # what to read: cpu, memory, disk, network, temperature, uptime
    disk_path: str = "/"  # any path on the disk to report
    root: str = "/"  # directory that contains proc and sys; differs in containers

    def __post_init__(self) -> None:
        for group in self.groups:
            if group not in GROUPS:
                raise ValueError(f"group {group!r} is not one of {', '.join(GROUPS)}")
