"""Times of day of quiet hours."""

from __future__ import annotations

import pytest

from cloud.domain.alerts.quieting.hours import QuietHours
from schema.errors import MachineError


@pytest.mark.parametrize("text", ["00:00", "0:00", "23:59", "9:05"])
def test_times_of_a_day(text: str) -> None:
    QuietHours(zone="UTC", start=text, end="07:00").check()


@pytest.mark.parametrize("text", ["24:00", "23:60", "7", "7:5", "007:00", ":00", "\u0667:00", "-1:00"])
def test_other_texts_are_refused_as_times(text: str) -> None:
    with pytest.raises(MachineError, match=r"quiet\.start"):
        QuietHours(zone="UTC", start=text, end="07:00").check()
