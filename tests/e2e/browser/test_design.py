"""The page that shows every part of the design system, compared with stored pictures.

`MACHINE_TESTS_DRAW=yes pytest tests/e2e/browser/test_design.py` replaces the pictures: look at them before a commit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from PIL import Image, ImageChops, ImageFilter

from cloud.web.common import site
from rpc.pages.assets import template_environment
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.gallery import DRAWN, SIZES
from tests.e2e.browser.looking import faults

pytestmark = needs_chromium
HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
STYLES: Final = ("rpc/pages/static/base.css", "cloud/web/static/cloud.css")
STORED: Final = HERE / "pictures"
SHOTS: Final = [(size, scheme) for size in ("wide", "desktop", "phone") for scheme in ("light", "dark")]
WIDTH: Final = {"wide": 1280, "desktop": 720, "phone": 360}  # pixels of a stored picture: text becomes grey, parts stay
DIFFERENT: Final = 24  # levels of 255 by which a blurred pixel differs visibly
TOLERATED: Final = 0.004  # share of such pixels: fonts differ a little from computer to computer


def html() -> str:
    """Return the page, with the styles and macros of the pages."""
    jinja = template_environment([HERE, ROOT / "cloud/web/templates"], site.assets())
    jinja.globals.update(known_states=site.RESOURCE_STATES)
    styles = [(ROOT / style).as_uri() for style in STYLES]
    return jinja.get_template("design.html").render(styles=styles)


def small(picture: Image.Image, width: int) -> Image.Image:
    """Return a picture as it is stored."""
    height = round(picture.height * width / picture.width)
    return picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)


def difference(before: Image.Image, after: Image.Image) -> float:
    """Return the share of pixels that differ visibly between two pictures; 1 if their heights differ by over 2 %."""
    if abs(before.height - after.height) > 0.02 * before.height:
        return 1.0
    box = (0, 0, before.width, min(before.height, after.height))
    blurred = [picture.crop(box).filter(ImageFilter.GaussianBlur(2)) for picture in (before, after)]
    differing = ImageChops.difference(*blurred).convert("L").point(lambda level: 255 * (level > DIFFERENT))
    return differing.histogram()[255] / (differing.width * differing.height)


async def test_every_part_looks_as_stored_and_is_accessible(tmp_path: Path) -> None:
    (tmp_path / "design.html").write_text(html())
    unlike: list[str] = []
    async with browser(tmp_path) as page:
        await page.goto((tmp_path / "design.html").as_uri())
        assert await faults(page) == []
        for size, scheme in SHOTS:
            name = f"design-{size}-{scheme}.webp"
            await page.appearance(scheme)
            await page.size(*SIZES[size], phone=size == "phone")
            await page.until(DRAWN)
            await page.screenshot(tmp_path / "shot.png")
            with Image.open(tmp_path / "shot.png") as shot:
                picture = small(shot, WIDTH[size])
            if os.environ.get("MACHINE_TESTS_DRAW") == "yes":
                picture.save(STORED / name, quality=85)
                continue
            with Image.open(STORED / name) as stored:
                share = difference(stored.convert("RGB"), picture)
            if share > TOLERATED:
                picture.save(tmp_path / name, quality=85)
                unlike.append(f"{name}: {share:.1%} of it looks different: compare {tmp_path / name}")
    assert not unlike, "\n".join(unlike)
    if os.environ.get("MACHINE_TESTS_DRAW") == "yes":
        pytest.skip("MACHINE_TESTS_DRAW=yes: the pictures were stored, not compared")


def test_a_missing_part_or_another_color_is_a_difference() -> None:
    picture = Image.new("RGB", (400, 400), "white")
    picture.paste("red", (20, 20, 120, 60))  # a button: 2.5 %
    assert difference(picture, picture) == 0
    without = Image.new("RGB", (400, 400), "white")
    assert difference(picture, without) > TOLERATED
    assert difference(picture, Image.new("RGB", (400, 500), "white")) == 1
