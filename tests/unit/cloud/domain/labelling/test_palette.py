"""Colors of labels."""

from __future__ import annotations

from cloud.domain.labelling.palette import COLORS, with_automatic_colors


def test_labels_without_a_color_get_unused_ones() -> None:
    names = [f"defect {number}" for number in range(len(COLORS))]
    colors = with_automatic_colors({"ok": COLORS[0]}, ["ok", *names[1:]])
    assert colors["ok"] == COLORS[0]
    assert sorted(colors.values()) == sorted(COLORS)
    assert colors == with_automatic_colors({"ok": COLORS[0]}, ["ok", *names[1:]])


def test_there_are_more_labels_than_colors() -> None:
    names = [f"defect {number}" for number in range(3 * len(COLORS))]
    assert set(with_automatic_colors({}, names).values()) == set(COLORS)
