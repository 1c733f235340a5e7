"""Rules that every organization has, until an owner changes or disables them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloud.domain.alerts.rule import Condition, Kind, Rule

HOUR: Final = 3600

PRESETS: Final[Mapping[str, Rule]] = {
    "machine-offline": Rule(name="Machine offline", kind=Kind.OFFLINE, for_seconds=300, repeat_seconds=24 * HOUR),
    "machine-degraded": Rule(
        name="Resource degraded",
        kind=Kind.HEALTH,
        for_seconds=300,
        recover_seconds=60,
        repeat_seconds=24 * HOUR,
        message="{machine}: {rule}, {state}, problems: {value}",
    ),
    "disk-full": Rule(
        name="Disk nearly full",
        kind=Kind.READING,
        condition=Condition(path="disk_used_pct", comparison="gte", threshold=90.0, recovery=85.0),
        for_seconds=300,
        repeat_seconds=24 * HOUR,
        no_data_seconds=HOUR,
        message="{machine}: {rule}, {state}, {value} %",
    ),
    "processor-hot": Rule(
        name="Processor hot",
        kind=Kind.READING,
        condition=Condition(path="temperature_*_c", comparison="gte", threshold=80.0, recovery=70.0),
        for_seconds=120,
        repeat_seconds=24 * HOUR,
        no_data_seconds=HOUR,
        message="{machine}: {rule}, {state}, {value} °C",
    ),
    "update-failed": Rule(name="Update failed", kind=Kind.UPDATE, message="{machine}: {rule}, {state}: {value}"),
    "training-failed": Rule(
        name="Training job failed", kind=Kind.TRAINING, message="{component}: {rule}, {state}: {value}"
    ),
}
"""By their ids. The last parts of their paths are names of readings of the model `host`."""
