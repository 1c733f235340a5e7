"""Plots of channels over time as SVG: axes with round numbers, units, a legend. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax import saxutils

from support.channels import PlottedQuantity

WIDTH: Final = 860
PANEL: Final = 220  # height of the drawing area of one panel
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 34, 40  # margins of a panel
LEGEND_LINE: Final = 18
# The palette of Okabe and Ito (jfly.uni-koeln.de/color), which color-blind people can distinguish; then dashes.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES: Final = ("", "6 3", "2 3")


# Characters that XML 1.0 does not allow (section 2.2, Char)
_FOREIGN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: its title, and channels of one unit."""

    title: str
    channels: Sequence[PlottedQuantity]

    @property
    def unit(self) -> str:
        """Unit of the vertical axis."""
        return self.channels[0].unit if self.channels else ""


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of values with round marks, and its length in pixels."""

    low: float
    high: float
    marks: tuple[float, ...]
    step: float
    pixels: float

    def at(self, value: float) -> float:
        """Return the distance of `value` from the low end in pixels."""
        return (value - self.low) / (self.high - self.low) * self.pixels

    def label(self, mark: float) -> str:
        """Return a mark as text, with as many decimals as the step needs."""
        if abs(mark) >= 1e6 or self.step < 1e-6:
            return f"{mark:g}"
        text = f"{mark:.{max(0, -math.floor(math.log10(self.step) + 1e-9))}f}"
        return text.removeprefix("-") if float(text) == 0 else text


def axis(low: float, high: float, pixels: float, marks: int) -> Axis:
    """Return the smallest axis with round marks (1, 2 or 5 times a power of ten apart) that contains low and high."""
    if high - low < 1e-12 * max(1.0, abs(low), abs(high)):
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    rough = (high - low) / marks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(first * step, last * step, tuple(i * step for i in range(first, last + 1)), step, pixels)


def escape(text: str) -> str:
    """Escape text for XML."""
    return saxutils.escape(_FOREIGN.sub("\ufffd", text))


def render_plot(title: str, panels: Sequence[Panel]) -> str:
    """Return an SVG picture of the panels, one below the other, with a common time axis."""
    panels = [panel for panel in panels if any(defined_points(channel) for channel in panel.channels)]
    end = max((channel.points[-1][0] for panel in panels for channel in panel.channels if channel.points), default=0.0)
    times = axis(0.0, max(end, 1e-3), WIDTH - LEFT - RIGHT, 10)
    parts: list[str] = []
    y = 30.0
    for panel in panels:
        parts.append(f'<g transform="translate({LEFT},{y + TOP:g})">{_panel(panel, times, end)}</g>')
        y += TOP + PANEL + BOTTOM + LEGEND_LINE * len(panel.channels)
    if not panels:
        parts.append(f'<text x="{WIDTH / 2}" y="60" text-anchor="middle">nothing was recorded</text>')
        y = 80
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:g}" viewBox="0 0 {WIDTH} {y:g}" '
        'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def panels_of(channels: Iterable[PlottedQuantity]) -> list[Panel]:
    """Return the panels. Channels with the same unit share one; those without a unit share one by their first word."""
    groups: dict[tuple[str, str], list[PlottedQuantity]] = {}
    for channel in channels:
        if defined_points(channel):
            groups.setdefault((channel.unit, "" if channel.unit else channel.name.partition(" ")[0]), []).append(
                channel
            )
    return [Panel(unit or word, group) for (unit, word), group in groups.items()]


def _panel(panel: Panel, times: Axis, end: float) -> str:
    values = [value for channel in panel.channels for _, value in defined_points(channel)]
    vertical = axis(min(values), max(values), PANEL, 5)
    lines = [f'<text x="0" y="-10" font-weight="bold">{escape(panel.title)}</text>']
    for mark in vertical.marks:
        y = PANEL - vertical.at(mark)
        lines.append(f'<path d="M0 {y:.1f}H{times.pixels:g}" stroke="#ddd"/>')
        lines.append(f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{vertical.label(mark)}</text>')
    for mark in times.marks:
        x = times.at(mark)
        lines.append(f'<path d="M{x:.1f} {PANEL}v5" stroke="#333"/>')
        lines.append(f'<text x="{x:.1f}" y="{PANEL + 18}" text-anchor="middle">{times.label(mark)}</text>')
    lines.append(f'<text x="{times.pixels:g}" y="{PANEL + 33}" text-anchor="end">time / s</text>')
    if panel.unit:
        middle = PANEL / 2
        lines.append(
            f'<text transform="translate(-58,{middle:g}) rotate(-90)" text-anchor="middle">{escape(panel.unit)}</text>'
        )
    for index, channel in enumerate(panel.channels):
        if defined_points(channel):
            lines.append(f'<path d="{_path(channel, times, vertical, end)}" fill="none" {_stroke(index)}/>')
    lines.append(f'<path d="M0 0V{PANEL}H{times.pixels:g}" fill="none" stroke="#333"/>')
    lines += _legend(panel)
    return "\n".join(lines)


def _stroke(index: int) -> str:
    dash = DASHES[index // len(COLOURS) % len(DASHES)]
    return f'stroke="{COLOURS[index % len(COLOURS)]}" stroke-width="1.5"' + (
        f' stroke-dasharray="{dash}"' if dash else ""
    )


def defined_points(channel: PlottedQuantity) -> list[tuple[float, float]]:
    """Return the points that are not gaps."""
    return [point for point in channel.points if not math.isnan(point[1])]


def _path(channel: PlottedQuantity, times: Axis, vertical: Axis, end: float) -> str:
    """Return the lines through the points, interrupted at gaps. The last step extends to the end of the picture."""
    runs: list[list[tuple[float, float]]] = [[]]
    for time, value in channel.points:
        x = times.at(time)
        if math.isnan(value):
            if channel.steps and runs[-1]:
                runs[-1].append((x, runs[-1][-1][1]))
            runs.append([])
        else:
            runs[-1].append((x, PANEL - vertical.at(value)))
    if channel.steps and runs[-1]:
        runs[-1].append((times.at(end), runs[-1][-1][1]))
    return "".join(_line(_thinned(run), steps=channel.steps) for run in runs if run)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Reduce the points of each pixel to the first, the extremes and the last."""
    columns: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        columns.setdefault(int(point[0]), []).append(point)
    kept: list[tuple[float, float]] = []
    for column in columns.values():
        if len(column) > 4:
            extremes = sorted((min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])))
            kept += [column[0], *extremes, column[-1]]
        else:
            kept += column
    return kept


def _line(points: Sequence[tuple[float, float]], *, steps: bool) -> str:
    start = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    if len(points) == 1:
        return f"{start}h4"
    return start + "".join(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in points[1:])


def _legend(panel: Panel) -> list[str]:
    lines = []
    for index, channel in enumerate(panel.channels):
        y = PANEL + 48 + LEGEND_LINE * index
        values = defined_points(channel)
        last = f"{values[-1][1]:.6g} {channel.unit}".rstrip() if values else "none"
        more = f", {channel.dropped} later ones not kept" if channel.dropped else ""
        text = f"{channel.title or channel.name} ({len(values)} values, last {last}{more})"
        lines.append(f'<path d="M0 {y - 4}h22" {_stroke(index)}/>')
        lines.append(f'<text x="30" y="{y}">{escape(text)}</text>')
    return lines
