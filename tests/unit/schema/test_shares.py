"""Numbers of machines, written as a number or as a share."""

from __future__ import annotations

import pytest

from schema import CountOrShare, MachineError


@pytest.mark.parametrize(
    ("text", "of_200"),
    [("0", 0), ("2", 2), (" 2 ", 2), ("5%", 10), ("5 %", 10), ("0.5 %", 1), ("100%", 200), ("0%", 0)],
)
def test_a_number_or_a_share(text: str, of_200: int) -> None:
    assert CountOrShare.parse(text).of(200) == of_200


def test_a_share_is_rounded_down_exactly() -> None:
    assert CountOrShare.parse("7 %").of(100) == 7  # 7.000000000000001 in floating point
    assert CountOrShare.parse("29%").of(100) == 29  # 28.999999999999996
    assert CountOrShare.parse("33.333333%").of(3) == 0


@pytest.mark.parametrize("text", ["", "-1", "1e3", "some", "101%", "5%%", "1 000", "٣", "99999999", "%"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match="neither a number such as 2"):
        CountOrShare.parse(text)
