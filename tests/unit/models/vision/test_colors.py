"""Regions of a hue, compared with drawn images and a slow flood fill."""

from __future__ import annotations

import colorsys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.vision.color_detector.hues import HueRange, hue_of
from models.vision.color_detector.regions import Region, regions, regions_of_hues
from tests.unit.models.vision.drawn import BLUE, GREEN, RED, picture

ANY = {"saturation": 0.2, "value": 0.3}


def flooded(rows: list[list[bool]]) -> list[Region]:
    """Find the regions with a simple flood fill."""
    left = {(x, y) for y, row in enumerate(rows) for x, is_set in enumerate(row) if is_set}
    results = []
    while left:
        todo, region = [left.pop()], []
        while todo:
            x, y = todo.pop()
            region.append((x, y))
            for near in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if near in left:
                    left.remove(near)
                    todo.append(near)
        xs, ys = [x for x, _ in region], [y for _, y in region]
        results.append(Region(len(region), min(xs), min(ys), max(xs) + 1, max(ys) + 1))
    return results


def key(region: Region) -> tuple[int, ...]:
    return (region.pixels, region.x_min, region.y_min, region.x_max, region.y_max)


@given(st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1)))
def test_regions_are_those_of_a_flood_fill(rows: list[list[bool]]) -> None:
    mask = Image.frombytes("L", (len(rows[0]), len(rows)), bytes(255 * cell for row in rows for cell in row))
    result = regions(mask, 1)
    assert sorted(map(key, result)) == sorted(map(key, flooded(rows)))
    assert [item.pixels for item in result] == sorted((element.pixels for element in result), reverse=True)
    assert [key(region) for region in regions(mask, 4)] == [key(entry) for entry in result if entry.pixels >= 4]


def test_regions_that_meet_below_are_one() -> None:
    drawn = picture((30, 20), {(2, 2, 5, 18): RED, (20, 2, 23, 18): RED, (2, 16, 23, 18): RED})
    (hue,) = regions_of_hues(drawn, HueRange(0.0, 0.02, **ANY), 10)
    assert key(hue) == (3 * 16 + 3 * 16 + 15 * 2, 2, 2, 23, 18)


@pytest.mark.parametrize("middle", [0.0, 0.99, 1 / 3, 2 / 3, 0.5])
def test_hues_within_reach_are_found_and_others_not(middle: float) -> None:
    for away, inside in ((0.0, True), (0.045, True), (-0.045, True), (0.06, False), (-0.06, False)):
        color = tuple(round(255 * part) for part in colorsys.hsv_to_rgb((middle + away) % 1.0, 1.0, 1.0))
        drawn = picture((20, 20), {(5, 5, 15, 15): (color[0], color[1], color[2])})
        assert bool(regions_of_hues(drawn, HueRange(middle, 0.05, **ANY), 50)) is inside, away


def test_pale_and_dark_pixels_do_not_count() -> None:
    drawn = picture((60, 20), {(0, 0, 20, 20): (255, 220, 220), (20, 0, 40, 20): (60, 0, 0), (40, 0, 60, 20): RED})
    (hue,) = regions_of_hues(drawn, HueRange(0.0, 0.05, **ANY), 10)
    assert (hue.x_min, hue.x_max) == (40, 60)
    (hue,) = regions_of_hues(drawn, HueRange(0.0, 0.05, saturation=0.1, value=0.2), 10)
    assert (hue.x_min, hue.x_max) == (0, 60)


def test_a_reach_of_half_the_circle_is_every_color_but_no_grey() -> None:
    drawn = picture((60, 20), {(0, 0, 10, 20): RED, (20, 0, 30, 20): GREEN, (40, 0, 50, 20): BLUE})
    assert len(regions_of_hues(drawn, HueRange(0.1, 0.5, **ANY), 10)) == 3


def test_colors_are_read_and_greys_refused() -> None:
    assert hue_of("#00FF00") == pytest.approx(1 / 3)
    assert hue_of("#1c4599") == pytest.approx(0.612, abs=0.001)
    for wrong in ("#808080", "#000000", "#ffffff"):
        with pytest.raises(ValueError, match="shade of grey"):
            hue_of(wrong)
    for wrong in ("red", "#12345", "123456", "#gg0000", "#1234567"):
        with pytest.raises(ValueError, match="write #RRGGBB"):
            hue_of(wrong)
