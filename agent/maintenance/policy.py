"""The policy of a device from its settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time, tzinfo
from typing import Final

from agent.maintenance.decide import Policy
from agent.maintenance.windows import MaintenanceHours
from schema.agent import AdvancedSettings, MaintenanceWindow

_DAYS: Final[Mapping[str, int]] = {"mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": 5, "sun": 6}


def policy(settings: AdvancedSettings, zone: tzinfo) -> Policy:
    """Return what the settings permit on a device in a time zone."""
    windows = [_window(window) for window in settings.maintenance_windows]
    return Policy(windows, settings.maintenance_longest_deferral or None, zone)


def _window(window: MaintenanceWindow) -> MaintenanceHours:
    days = frozenset(_DAYS[day] for day in window.days)
    return MaintenanceHours(time.fromisoformat(window.start), time.fromisoformat(window.end), days)
