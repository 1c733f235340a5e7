"""Draw the view of a camera above a belt with washers, some of which are broken, into an image file.

    python examples/parts/belt.py FOLDER [--interval SECONDS] [--count NUMBER]

`FOLDER/part.jpg` is replaced with a new part each time. The camera model `image_file` shows it. What each picture
shows is printed: ok, broken or missing.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import random
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

SIZE = 320, 240
KINDS = "ok", "broken", "missing"


def draw(chance: random.Random, kind: str) -> bytes:
    """Return a JPEG of a belt with a part of this kind, at a random place, in random light."""
    image = Image.effect_noise(SIZE, chance.uniform(12, 30)).convert("RGB")
    belt = Image.new("RGB", SIZE, tuple(chance.randint(40, 90) for _ in range(3)))
    image = Image.blend(belt, image, 0.25)
    pen = ImageDraw.Draw(image)
    for x in range(chance.randint(-30, 0), SIZE[0], 30):
        pen.line([(x, 0), (x + 12, SIZE[1])], fill=(35, 35, 38), width=2)
    if kind != "missing":
        _washer(chance, pen, broken=kind == "broken")
    light = chance.uniform(0.75, 1.25)
    image = image.point(lambda value: min(255, int(value * light))).filter(ImageFilter.GaussianBlur(0.8))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def _washer(chance: random.Random, pen: ImageDraw.ImageDraw, *, broken: bool) -> None:
    radius = chance.randint(50, 65)
    x, y = (chance.randint(radius + 5, length - radius - 5) for length in SIZE)
    shade = chance.randint(165, 205)
    gap = chance.uniform(50, 110) if broken else 0.0
    begin = chance.uniform(0, 360)
    box = x - radius, y - radius, x + radius, y + radius
    pen.arc(box, begin + gap, begin + 360, fill=(shade, shade, shade + 8), width=radius // 2)
    for ring in (radius, radius // 2):
        edge = x - ring, y - ring, x + ring, y + ring
        pen.arc(edge, begin + gap, begin + 360, fill=(shade - 60, shade - 60, shade - 55), width=2)
    for angle in (begin + gap, begin) if broken else ():
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        ends = [(x + part * cosine, y + part * sine) for part in (radius / 2, radius)]
        pen.line(ends, fill=(40, 40, 40), width=3)


def show(folder: Path, content: bytes) -> None:
    """Replace the picture, so that a reader sees the old or the new one as a whole."""
    hidden = folder / ".part.jpg"
    hidden.write_bytes(content)
    os.replace(hidden, folder / "part.jpg")


def main() -> None:
    """Draw until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two parts (1)")
    parser.add_argument("--count", type=int, default=0, help="number of parts (0: until Ctrl-C)")
    settings = parser.parse_args()
    settings.folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random()
    number = 0
    while not settings.count or number < settings.count:
        kind = chance.choice(KINDS)
        show(settings.folder, draw(chance, kind))
        print(kind, flush=True)
        number += 1
        time.sleep(settings.interval)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
