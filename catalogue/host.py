"""Attributes that `runtime.builtin.host` reads."""

from __future__ import annotations

from typing import Final

from schema.attributes import Attributes

GROUPS: Final = ("cpu", "memory", "disk", "network", "temperature", "uptime")


class HostSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the host sensor."""

    groups: tuple[str, ...] = GROUPS  # what to read: cpu, memory, disk, network, temperature, uptime
    disk_path: str = "/"  # a path on the disk to read about
    root: str = "/"  # where proc and sys are mounted: another place when running in a container

    def __post_init__(self) -> None:
        for group in self.groups:
            if group not in GROUPS:
                raise ValueError(f"group {group!r} is not one of {', '.join(GROUPS)}")
