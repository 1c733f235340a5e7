"""Contrast of all pages' colors in both schemes, computed from the style sheets (WCAG 2.2, 1.4.3, 1.4.11)."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import rpc.pages

SHARED = Path(rpc.pages.__file__).parent / "static" / "base.css"
ROOT = Path(__file__).parents[5]
SHEETS = sorted(
    path
    for folder in ("rpc/pages", "cloud/web", "runtime/parts/web")
    for path in (ROOT / folder / "static").glob("*.css")
)
TEXT = ("ink", "muted", "ready", "configuring", "unhealthy", "removing", "unconfigured")
EDGES = ("field", "focus")  # of fields and buttons, and around the focused element


def scheme(dark: bool) -> dict[str, str]:
    """Return the colors of the variables by name."""
    css = SHARED.read_text()
    light, after = css.split("@media (prefers-color-scheme: dark)", 1)
    matches = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return matches | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", after.split("\n}", 1)[0])) if dark else matches


def light(color: str) -> float:
    """Return the relative luminance, from 0 (black) to 1 (white)."""
    shares = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(first * weight for first, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(item: str, other: str) -> float:
    low, high = sorted((light(item), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_and_edges_stand_out(dark: bool) -> None:
    colors = scheme(dark)
    low = [
        f"{front} on {back}: {contrast(colors[front], colors[back]):.2f}"
        for expected, names in ((4.5, TEXT), (3.0, EDGES))
        for front, back in itertools.product(names, ("paper", "raised"))
        if contrast(colors[front], colors[back]) < expected
    ]
    assert not low


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_colors_are_named(sheet: Path) -> None:
    """A literal color would be the same in the dark scheme; shadows are black in both and may be literal."""
    text = re.sub(r"--[\w-]+: #[0-9a-f]{6};", "", sheet.read_text())
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*;)", text) == []


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_nothing_moves_if_reduced_motion_is_requested(sheet: Path) -> None:
    calm = re.sub(r"@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}", "", sheet.read_text(), flags=re.DOTALL)
    moving = re.findall(r"\b(?:animation|transition)\b(?!: none !important)|scroll-behavior: smooth", calm)
    assert moving == []  # a library may move what a sheet then stops


def test_both_schemes_have_the_same_names() -> None:
    css = SHARED.read_text()
    light_part, after = css.split("@media (prefers-color-scheme: dark)", 1)
    names = [set(re.findall(r"--([\w-]+): #", part)) for part in (light_part, after.split("\n}", 1)[0])]
    assert names[0] == names[1]
