"""Operators of conditions: every row of the table is tested and documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.triggers.condition_table import ROWS
from triggers.operators import OPERATORS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "triggers.md"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_outcomes_and_a_line_on_the_page(name: str) -> None:
    assert {outcome for operator, _, _, outcome in ROWS if operator == name} == {True, False}
    assert any(f"`{name}`" in line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `"))
