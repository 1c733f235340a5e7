"""The policy of the settings."""

from __future__ import annotations

from datetime import UTC, time

from agent.maintenance.decide import Policy
from agent.maintenance.policy import policy
from agent.maintenance.windows import EVERY_DAY, MaintenanceHours
from schema.agent.records import AdvancedSettings, MaintenanceWindow


def test_the_defaults_permit_everything() -> None:
    assert policy(AdvancedSettings(), UTC) == Policy([], None, UTC)


def test_windows_and_the_longest_deferral() -> None:
    settings = AdvancedSettings(
        maintenance_windows=(
            MaintenanceWindow(start="22:30", end="04:00"),
            MaintenanceWindow(days=("sun", "mon"), start="00:00", end="00:00"),
        ),
        maintenance_longest_deferral=7200.0,
    )
    windows = [
        MaintenanceHours(time(22, 30), time(4), EVERY_DAY),
        MaintenanceHours(time(0), time(0), frozenset({0, 6})),
    ]
    assert policy(settings, UTC) == Policy(windows, 7200.0, UTC)
