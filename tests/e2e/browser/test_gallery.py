"""The pages of a cloud and of a machine, in each scene of the gallery, compared with stored pictures.

Of each page, what is seen at first is compared.

`MACHINE_TESTS_DRAW=yes pytest tests/e2e/browser/test_gallery.py` replaces the pictures: look at them before a commit.
Texts that differ from run to run, such as times, ids and ports, are a small part of a picture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from PIL import Image

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.gallery import SCENES, SHOTS, SIZES, Gallery
from tests.e2e.browser.test_design import difference, small

pytestmark = needs_chromium
STORED: Final = Path(__file__).parent / "pictures" / "gallery"
WIDTH: Final = {"desktop": 480, "phone": 180}  # pixels of a stored picture: text becomes grey, parts stay
TOLERATED: Final = 0.03  # share of visibly different pixels; runs differ by at most 0.009
LIVELY: Final = {
    "machine-control": 0.25,
    "own-control": 0.25,
    "machine-statistics": 0.12,
    "own-statistics": 0.12,
    "own-logs": 0.15,
    "own-overview": 0.12,
    "machine-new": 0.06,
}
"""The same for pages that show what happens now: runs differ by at most 0.05.

Live video fills a quarter of Control, and is less sharp on a busy computer. A new key fills much of a phone's page. The
state of a failed resource changes while it is retried, and with it the first row of the overview.
"""


def names(folder: Path) -> list[str]:
    """Return the names of the pages of which there are pictures, each with its scene first."""
    size, scheme = SHOTS[0]
    end = f"-{size}-{scheme}.png"
    return sorted(path.name.removesuffix(end) for path in folder.glob(f"*{end}"))


def seen_first(folder: Path, name: str) -> Iterator[Image.Image]:
    """Yield what is seen of a page before scrolling, for each of SHOTS, as it is stored."""
    for size, scheme in SHOTS:
        width, height = SIZES[size]
        with Image.open(folder / f"{name}-{size}-{scheme}.png") as shot:
            whole = Image.new("RGB", (shot.width, round(shot.width * height / width)))
            whole.paste(shot.convert("RGB"))
        yield small(whole, WIDTH[size])


def sheet(pictures: list[Image.Image]) -> Image.Image:
    """Return pictures next to each other."""
    whole = Image.new("RGB", (sum(each.width for each in pictures), max(each.height for each in pictures)))
    left = 0
    for each in pictures:
        whole.paste(each, (left, 0))
        left += each.width
    return whole


def differences(stored: Image.Image, pictures: list[Image.Image]) -> Iterator[float]:
    """Yield how much each picture differs from its part of a stored sheet."""
    left = 0
    for each in pictures:
        yield difference(stored.crop((left, 0, left + each.width, each.height)), each)
        left += each.width


@pytest.mark.limit(600)
@pytest.mark.parametrize("scene", SCENES)
async def test_pages_look_as_stored(tmp_path: Path, scene: str) -> None:
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    async with browser(tmp_path) as page:
        page.expect(".")  # other tests look at errors
        await SCENES[scene](Gallery(page, drawn, scene, "", weighed=False), tmp_path)
    stored = {path.stem: path for path in STORED.glob(f"{scene}-*.webp")}
    if os.environ.get("MACHINE_TESTS_DRAW") == "yes":
        STORED.mkdir(exist_ok=True)
        for name in names(drawn):
            sheet(list(seen_first(drawn, name))).save(STORED / f"{name}.webp", quality=70)
        pytest.skip("MACHINE_TESTS_DRAW=yes: the pictures were stored, not compared")
    assert names(drawn) == sorted(stored), "pages without, or of, stored pictures"
    unlike: list[str] = []
    for name in names(drawn):
        pictures = list(seen_first(drawn, name))
        with Image.open(stored[name]) as whole:
            shares = list(differences(whole.convert("RGB"), pictures))
        if max(shares) > LIVELY.get(name.removeprefix(f"{scene}-"), TOLERATED):
            file = tmp_path / f"{name}.webp"
            sheet(pictures).save(file, quality=70)
            unlike.append(f"{name}: {max(shares):.1%} of it looks different: compare {file}")
        print(f"{name}: {', '.join(f'{share:.2%}' for share in shares)}")
    assert not unlike, "\n".join(unlike)
