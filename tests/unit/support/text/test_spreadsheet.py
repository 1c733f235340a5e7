"""Cells of CSV files that a spreadsheet would interpret as formulas."""

from __future__ import annotations

import pytest

from runtime.parts.data.export import csv_cell
from support.text.spreadsheet import harmless_cell
from support.text.terminal import clean


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1"])
def test_cells_that_begin_a_formula_are_text(text: str) -> None:
    assert harmless_cell(text) == f"'{text}"
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "1-1", "rover", "a=b"])
def test_other_text_stays(text: str) -> None:
    assert harmless_cell(text) == csv_cell(text) == text


def test_numbers_stay_numbers() -> None:
    assert csv_cell(-1.5) == -1.5


def test_characters_that_turn_text_around_are_not_shown() -> None:
    assert clean("a\u202eb\u2066c\u2069d\u061ce\x1bf") == "a b c d e f"
