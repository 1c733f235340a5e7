"""What trained detectors are compared with: a small network from scratch, and scikit-learn on the pixels of windows.

Both get all training pictures, with the changed copies that the trainer makes, and suppress boxes as it does.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from PIL import Image

from bench.training_sets import Sample
from training.trainers.detection import importance_of
from training.trainers.detectors import targets
from training.trainers.detectors.boxes import Box, Boxed, overlap
from training.trainers.detectors.graph import CANDIDATES, LEAST, OVERLAP
from training.trainers.detectors.network import LONGEST, RARE
from training.trainers.finetune.detector import loss

Detector = Callable[[Image.Image], list[Box]]


def boxed(samples: Sequence[Sample]) -> list[Boxed]:
    return [Boxed("", "", tuple(Box(*box) for box in sample.boxes)) for sample in samples]


def box_of(label: str, edges: Sequence[float], score: float) -> Box:
    left, top, right, bottom = edges
    return Box(label, left, top, right, bottom, float(score))


def suppressed(boxes: Sequence[Box]) -> list[Box]:
    """Return the best boxes, without those that overlap a better one of the same label."""
    result: list[Box] = []
    for box in sorted(boxes, key=lambda box: -box.score):
        if box.score <= LEAST or len(result) == CANDIDATES:
            break
        if all(box.label != kept.label or overlap(box, kept) <= OVERLAP for kept in result):
            result.append(box)
    return result


# ---- from scratch

SIDE: Final = 160  # pixels of a picture
CELLS: Final = 20  # of the output in each direction
BATCH: Final = 16
PICTURES: Final = 6400  # changed copies that the network sees in all
RATE: Final = 4e-3


def from_scratch(training: Sequence[Sample], labels: Sequence[str], seed: int) -> Detector:
    """Train a convolutional network, of a million parameters, on copies that are never the same."""
    arrays, torch = importlib.import_module("numpy"), importlib.import_module("torch")
    torch.manual_seed(seed)
    network = _network(torch, len(labels)).to(memory_format=torch.channels_last)
    importance = torch.from_numpy(importance_of(arrays, boxed(training), labels))
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-2)
    steps, copies = PICTURES // BATCH, _copies(training, random.Random(seed))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    for _ in range(steps):
        pairs = [next(copies) for _ in range(BATCH)]
        goals = [targets.target(arrays, boxes, labels, CELLS) for _, boxes in pairs]
        target = {name: torch.from_numpy(arrays.stack([goal[name] for goal in goals])) for name in goals[0]}
        with torch.autocast("cpu", torch.bfloat16):  # takes half the time where the processor has such instructions
            output = network(_tensor(arrays, torch, [image for image, _ in pairs]))
        optimizer.zero_grad()
        loss(torch, output.float().permute(0, 2, 3, 1), target, importance).backward()
        optimizer.step()
        schedule.step()
    network.eval()

    def detect(image: Image.Image) -> list[Box]:
        with torch.inference_mode():
            return suppressed(_decoded(torch, network(_tensor(arrays, torch, [image]))[0], labels))

    return detect


def _copies(training: Sequence[Sample], chance: random.Random) -> Iterator[tuple[Image.Image, tuple[Box, ...]]]:
    pictures = list(zip(training, boxed(training), strict=True))
    while True:
        chance.shuffle(pictures)
        for sample, picture in pictures:
            yield targets.changed(sample.image, picture.boxes, chance)


def _tensor(arrays: Any, torch: Any, images: Sequence[Image.Image]) -> Any:
    rows = [arrays.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR), "float32") for image in images]
    return torch.from_numpy(arrays.stack(rows)).permute(0, 3, 1, 2) / 127.5 - 1


def _network(torch: Any, labels: int) -> Any:
    """Return a network from pictures to [pictures, labels + 4, cells, cells]."""
    layers = torch.nn

    def block(inputs: int, outputs: int, stride: int = 1) -> list[Any]:
        convolution = layers.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        return [convolution, layers.BatchNorm2d(outputs), layers.ReLU()]

    class Residual(layers.Module):  # type: ignore[misc, name-defined]
        def __init__(self, *inside: Any) -> None:
            super().__init__()
            self.inside = layers.Sequential(*inside)

        def forward(self, values: Any) -> Any:
            return values + self.inside(values)

    coarse = [
        *block(96, 128, 2), Residual(*block(128, 128), *block(128, 128)), Residual(*block(128, 128), *block(128, 128)),
        layers.Conv2d(128, 96, 1), layers.Upsample(scale_factor=2),
    ]  # fmt: skip
    last = layers.Conv2d(96, labels + 4, 1)
    with torch.no_grad():
        last.weight *= 0.1
        last.bias.copy_(torch.tensor([RARE] * labels + [0.0] * 4))
    return layers.Sequential(
        *block(3, 24, 2), *block(24, 48, 2), *block(48, 96, 2), Residual(*block(96, 96)), Residual(*coarse),
        *block(96, 96), last,
    )  # fmt: skip


def _decoded(torch: Any, output: Any, labels: Sequence[str]) -> list[Box]:
    scores = output[: len(labels)].sigmoid()
    peaks = scores * (scores == torch.nn.functional.max_pool2d(scores[None], 3, 1, 1)[0])
    best, places = peaks.flatten().topk(CANDIDATES)
    distances = output[len(labels) :].clamp(-LONGEST, LONGEST).exp().flatten(1)
    result = []
    for score, place in zip(best.tolist(), places.tolist(), strict=True):
        label, cell = divmod(place, CELLS**2)
        left, top, right, bottom = distances[:, cell].tolist()
        y, x = (at + 0.5 for at in divmod(cell, CELLS))
        edges = [min(1.0, max(0.0, at / CELLS)) for at in (x - left, y - top, x + right, y + bottom)]
        result.append(box_of(labels[label], edges, score))
    return result


# ---- scikit-learn on the pixels of windows

WINDOW: Final = 16  # pixels of a window in each direction
STRIDE: Final = 3  # pixels between two windows
FORMS: Final = 8  # pairs of a width and a height of windows
COPIES: Final = 6  # of each picture at most
MOST_COPIES: Final = 600  # of all pictures
RIGHT: Final = 0.55  # overlap with a box, from which on a window shows its object
WRONG: Final = 0.4  # overlap below which a window shows background
BACKGROUND: Final = 20  # windows of a copy
HARD: Final = 10  # windows of a copy with wrong labels
MOST: Final = 1000  # best windows of a picture, before suppression
STRENGTH: Final = 0.001  # inverse of the regularization


def logistic(training: Sequence[Sample], labels: Sequence[str], seed: int) -> Detector:
    """Fit logistic regression on windows, whose sizes are those of the boxes, with one round of hard negatives."""
    arrays, background = importlib.import_module("numpy"), len(labels)
    make = importlib.import_module("sklearn.linear_model").LogisticRegression
    forms, copies = _forms(arrays, training, seed), _copies(training, random.Random(seed))
    chosen = [next(copies) for _ in range(min(MOST_COPIES, COPIES * len(training)))]
    draw = arrays.random.default_rng(seed)
    rows: list[Any] = []
    kinds: list[Any] = []

    def add(values: Any, kind: Any) -> None:
        rows.append(values)
        kinds.append(arrays.broadcast_to(kind, len(values)))

    def fitted() -> Any:
        return make(C=STRENGTH, max_iter=300).fit(arrays.concatenate(rows), arrays.concatenate(kinds))

    for image, boxes in chosen:
        edges, values = _windows(arrays, image, forms)
        own = arrays.array([labels.index(box.label) for box in boxes], int)
        shares = _shares(arrays, edges, boxes)
        if boxes:
            add(arrays.stack([_cut(arrays, image, box) for box in boxes]), own)
            right = shares.max(axis=1) >= RIGHT
            add(values[right], own[shares[right].argmax(axis=1)])
        wrong = arrays.flatnonzero((shares < WRONG).all(axis=1))
        add(values[draw.choice(wrong, min(BACKGROUND, len(wrong)), replace=False)], background)
    model = fitted()
    for image, boxes in chosen:
        edges, values = _windows(arrays, image, forms)
        wrong = values[(_shares(arrays, edges, boxes) < WRONG).all(axis=1)]
        add(wrong[model.predict_proba(wrong)[:, background].argsort()[:HARD]], background)
    model = fitted()

    def detect(image: Image.Image) -> list[Box]:
        edges, values = _windows(arrays, image, forms)
        scores = model.predict_proba(values)[:, :background]
        places = [divmod(int(place), background) for place in arrays.argsort(-scores, axis=None)[:MOST]]
        return suppressed([box_of(labels[label], edges[row].tolist(), scores[row, label]) for row, label in places])

    return detect


def _forms(arrays: Any, training: Sequence[Sample], seed: int) -> list[tuple[float, float]]:
    """Return widths and heights of windows, as shares of a picture, that are near to those of the boxes."""
    sizes = arrays.array(
        [[box.x_max - box.x_min, box.y_max - box.y_min] for each in boxed(training) for box in each.boxes]
    )
    count = min(FORMS, len(arrays.unique(sizes, axis=0)))
    groups = (
        importlib.import_module("sklearn.cluster").KMeans(count, n_init=4, random_state=seed).fit(arrays.log(sizes))
    )
    return [(min(1.0, width), min(1.0, height)) for width, height in arrays.exp(groups.cluster_centers_).tolist()]


def _windows(arrays: Any, image: Image.Image, forms: Sequence[tuple[float, float]]) -> tuple[Any, Any]:
    """Return edges [windows, 4] and pixels [windows, values] of all windows of a picture."""
    edges, values = [], []
    for width, height in forms:
        size = max(WINDOW, round(WINDOW / width)), max(WINDOW, round(WINDOW / height))
        small = _numbers(arrays, image.resize(size, Image.Resampling.BILINEAR))
        views = arrays.lib.stride_tricks.sliding_window_view(small, (WINDOW, WINDOW), axis=(0, 1))[::STRIDE, ::STRIDE]
        rows, columns = views.shape[:2]
        values.append(views.transpose(0, 1, 3, 4, 2).reshape(rows * columns, -1))
        y, x = (grid.ravel() * STRIDE for grid in arrays.indices((rows, columns)))
        scale = arrays.array([*size, *size], "float32")
        edges.append(arrays.stack([x, y, x + WINDOW, y + WINDOW], axis=1) / scale)
    return arrays.concatenate(edges), arrays.concatenate(values)


def _cut(arrays: Any, image: Image.Image, box: Box) -> Any:
    part = (box.x_min * image.width, box.y_min * image.height, box.x_max * image.width, box.y_max * image.height)
    return _numbers(arrays, image.resize((WINDOW, WINDOW), Image.Resampling.BILINEAR, part)).ravel()


def _numbers(arrays: Any, image: Image.Image) -> Any:
    return arrays.asarray(image, "float32") / 127.5 - 1


def _shares(arrays: Any, edges: Any, boxes: Sequence[Box]) -> Any:
    """Return the overlap of each window with each box, as `boxes.overlap`."""
    others = arrays.array([[box.x_min, box.y_min, box.x_max, box.y_max] for box in boxes]).reshape(-1, 4)
    low, high = arrays.maximum(edges[:, None, :2], others[:, :2]), arrays.minimum(edges[:, None, 2:], others[:, 2:])
    both = (high - low).clip(0).prod(axis=2)
    areas = [(each[:, 2:] - each[:, :2]).prod(axis=1) for each in (edges, others)]
    return both / (areas[0][:, None] + areas[1] - both)


NEEDED: Final[Mapping[str, str]] = {"from scratch": "torch", "logistic regression": "sklearn"}
WAYS: Final[Mapping[str, Callable[[Sequence[Sample], Sequence[str], int], Detector]]] = {
    "from scratch": from_scratch, "logistic regression": logistic,
}  # fmt: skip
"""Peers by name, and the packages that they need."""
