"""The image of the bench for a camera above it. Imports Pillow when the first image is rendered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from hal.sim.bench.axes import SimAxes, SimControl
from hal.sim.bench.base import SimBase
from hal.sim.bench.board import SimBoard
from hal.sim.bench.device import Device
from hal.sim.bench.encoder import SimEncoder
from hal.sim.bench.motor import SimMotor
from hal.sim.bench.world import World

if TYPE_CHECKING:
    from PIL import Image

BACKGROUND: Final = (28, 32, 38)
INK: Final = (200, 208, 216)
DIM: Final = (84, 92, 104)
LIT: Final = (255, 190, 64)
MOVING: Final = (96, 200, 255)
REST: Final = (120, 200, 140)
MM_PER_CELL: Final = 2000.0  # size of the floor in a base's cell; positions wrap around


def render_bench(world: World, width: int, height: int) -> Image.Image:
    """Render the current state of the bench in `width` by `height` pixels."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), BACKGROUND)
    draw = ImageDraw.Draw(image)
    devices = world.devices()
    head = max(12, height // 20)
    columns = max(1, math.ceil(math.sqrt(max(1, len(devices)) * width / max(1, height - head))))
    rows = max(1, math.ceil(len(devices) / columns))
    size = max(8.0, min(width / columns, (height - head) / rows))
    draw.text((4, 1), f"{world.now():.1f} s  {world.volts():.2f} V  {world.current():.2f} A", fill=INK)
    for index, device in enumerate(devices):
        x, y = (index % columns) * size, head + (index // columns) * size
        draw.rectangle((x + 1, y + 1, x + size - 2, y + size - 2), outline=DIM)
        _sketch(draw, device, world, (x + size / 2, y + size / 2, size * 0.36))
        draw.text((x + 4, y + size - 13), device.name, fill=INK)
    return image


def _sketch(draw: Any, device: Device, world: World, place: tuple[float, float, float]) -> None:
    now = world.now()
    match device:
        case SimBoard():
            _board(draw, device, now, place)
        case SimMotor():
            colour = MOVING if device.shaft.moving(now) else REST
            _dial(draw, place, device.travel(now) * 360.0, colour)
        case SimEncoder():
            _dial(draw, place, device.ticks(now) * 360.0 / (device.ticks_per_rotation or 360.0), INK)
        case SimBase():
            _floor(draw, device, now, place)
        case SimAxes(look="arm"):
            _arm(draw, device.values(now), place)
        case SimAxes(look="servo"):
            _dial(draw, place, device.values(now)[0], MOVING if device.moving(now) else REST)
        case SimAxes():
            _sliders(draw, device.values(now), place, MOVING if device.moving(now) else REST)
        case SimControl():
            x, y, r = place
            draw.ellipse((x - r, y - r, x + r, y + r), outline=INK, fill=LIT if device.value else BACKGROUND)
            draw.text((x - 3, y - 6), f"{device.value:g}", fill=INK)
        case _:
            pass


def _dial(draw: Any, place: tuple[float, float, float], degrees: float, colour: tuple[int, int, int]) -> None:
    x, y, r = place
    draw.ellipse((x - r, y - r, x + r, y + r), outline=colour)
    angle = math.radians(degrees)
    draw.line((x, y, x + r * math.sin(angle), y - r * math.cos(angle)), fill=colour, width=max(1, int(r / 12)))


def _board(draw: Any, device: SimBoard, now: float, place: tuple[float, float, float]) -> None:
    x, y, r = place
    draw.rectangle((x - r, y - r * 0.8, x + r, y + r * 0.7), outline=(60, 140, 90))
    pins = device.wiring.pins(device.name)
    side = max(1, math.ceil(math.sqrt(len(pins))))
    step = 2 * r / (side + 1)
    for index, pin in enumerate(pins):
        mean = device.wiring.signal(pin).mean(now)
        colour = tuple(round(a + (b - a) * mean) for a, b in zip(DIM, LIT, strict=True))
        px, py = x - r + step * (1 + index % side), y - r * 0.8 + step * 0.75 * (1 + index // side)
        dot = max(1.0, step * 0.3)
        draw.ellipse((px - dot, py - dot, px + dot, py + dot), fill=colour)


def _floor(draw: Any, device: SimBase, now: float, place: tuple[float, float, float]) -> None:
    x, y, r = place
    spot = device.place(now)
    half = MM_PER_CELL / 2
    px = x + ((spot.x + half) % MM_PER_CELL - half) / half * r
    py = y - ((spot.y + half) % MM_PER_CELL - half) / half * r
    draw.rectangle((x - r, y - r, x + r, y + r), outline=DIM)
    heading = math.radians(spot.heading)
    nose = (px - r * 0.3 * math.sin(heading), py - r * 0.3 * math.cos(heading))
    body = r * 0.16
    draw.ellipse((px - body, py - body, px + body, py + body), fill=MOVING if device.speeds(now) != (0, 0) else REST)
    draw.line((px, py, *nose), fill=INK, width=max(1, int(r / 14)))


def _arm(draw: Any, values: list[float], place: tuple[float, float, float]) -> None:
    x, y, r = place
    at, angle, step = (x, y + r), 0.0, 2 * r / max(1, len(values))
    for value in values:
        angle += math.radians(value)
        end = (at[0] + step * math.sin(angle), at[1] - step * math.cos(angle))
        draw.line((*at, *end), fill=REST, width=max(1, int(r / 10)))
        at = end


def _sliders(draw: Any, values: list[float], place: tuple[float, float, float], colour: tuple[int, int, int]) -> None:
    x, y, r = place
    for index, value in enumerate(values):
        py = y + (index - (len(values) - 1) / 2) * r * 0.6
        share = 1 - math.exp(-abs(value) / 200.0)
        draw.line((x - r, py, x + r, py), fill=DIM)
        px = x - r + 2 * r * share
        draw.rectangle((px - 3, py - 6, px + 3, py + 6), fill=colour)
