"""The detector's head on maps of a frozen backbone, and its gradients, with numpy. The same data give the same head.

Maps have the layout [pictures, height, width, channels], the finest first. The head adds projections of all maps on the
grid of the finest, applies two blocks of a 3 x 3 depthwise and a 1 x 1 convolution, and gives for each cell a score for
each label (the cell contains the center of such a box) and the logarithms of the distances from the cell's center to
the four edges of the box, in cells (Objects as Points, Zhou et al. 2019; FCOS, Tian et al. 2019).

`arrays` is the module numpy, which is not imported at the top: most of the project runs without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

WIDTH: Final = 64  # channels inside of the head
BLOCKS: Final = (1, 2)
RARE: Final = -4.0  # first score: almost no cell contains a center
DECAY: Final = 1e-3  # share of the weights that a step of rate 1 takes away
BOX_WEIGHT: Final = 1.0  # of the boxes' loss, against that of the scores
LONGEST: Final = 6.0  # largest logarithm of a distance
_TINY: Final = 1e-6

Weights = dict[str, Any]


def initial(arrays: Any, channels: Sequence[int], labels: int, seed: int) -> Weights:
    """Return random weights for maps with these numbers of channels."""
    chance = arrays.random.default_rng(seed)

    def drawn(*shape: int, inputs: int) -> Any:
        return (chance.standard_normal(shape) * (2 / inputs) ** 0.5).astype("float32")

    weights: Weights = {"bias": arrays.zeros(WIDTH, "float32")}
    for number, count in enumerate(channels):
        weights[f"map{number}"] = drawn(count, WIDTH, inputs=count * len(channels))
    for block in BLOCKS:
        weights[f"deep{block}"] = drawn(3, 3, WIDTH, inputs=9)
        weights[f"point{block}"] = drawn(WIDTH, WIDTH, inputs=WIDTH) * 0.5
        weights[f"shift{block}"] = arrays.zeros(WIDTH, "float32")
    weights["out"] = drawn(WIDTH, labels + 4, inputs=WIDTH) * 0.1
    weights["out_bias"] = arrays.array([RARE] * labels + [0.0] * 4, "float32")
    return weights


def forward(arrays: Any, weights: Weights, maps: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the output [pictures, height, width, labels + 4], and what `backward` needs."""
    total = maps[0] @ weights["map0"] + weights["bias"]
    for number, coarse in enumerate(maps[1:], 1):
        total = total + _enlarged(coarse @ weights[f"map{number}"], total.shape[1] // coarse.shape[1])
    current = arrays.maximum(total, 0)
    kept = [current]
    for block in BLOCKS:
        mixed = _deep(arrays, current, weights[f"deep{block}"])
        raised = arrays.maximum(mixed @ weights[f"point{block}"] + weights[f"shift{block}"], 0)
        current = current + raised
        kept += [mixed, raised, current]
    return current @ weights["out"] + weights["out_bias"], kept


def backward(arrays: Any, weights: Weights, maps: Sequence[Any], kept: Sequence[Any], slope: Any) -> Weights:
    """Return the gradient of the loss for each weight, from its gradient for the output."""
    gradients: Weights = {"out": _outer(kept[-1], slope), "out_bias": slope.sum(axis=(0, 1, 2))}
    slope = slope @ weights["out"].T
    for block in reversed(BLOCKS):
        before, mixed, raised = kept[3 * block - 3], kept[3 * block - 2], kept[3 * block - 1]
        inner = slope * (raised > 0)
        gradients[f"point{block}"] = _outer(mixed, inner)
        gradients[f"shift{block}"] = inner.sum(axis=(0, 1, 2))
        inner = inner @ weights[f"point{block}"].T
        gradients[f"deep{block}"] = _deep_gradient(arrays, before, inner)
        slope = slope + _deep(arrays, inner, weights[f"deep{block}"][::-1, ::-1])
    slope = slope * (kept[0] > 0)
    gradients["bias"] = slope.sum(axis=(0, 1, 2))
    for number, source in enumerate(maps):
        factor = slope.shape[1] // source.shape[1]
        gradients[f"map{number}"] = _outer(source, _reduced(slope, factor))
    return gradients


def _outer(source: Any, slope: Any) -> Any:
    return source.reshape(-1, source.shape[-1]).T @ slope.reshape(-1, slope.shape[-1])


def _enlarged(values: Any, factor: int) -> Any:
    return values.repeat(factor, axis=1).repeat(factor, axis=2)


def _reduced(values: Any, factor: int) -> Any:
    count, height, width, channels = values.shape
    split = values.reshape(count, height // factor, factor, width // factor, factor, channels)
    return split.sum(axis=(2, 4))


def _shifted(arrays: Any, values: Any) -> Any:
    return arrays.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))


def _deep(arrays: Any, values: Any, kernel: Any) -> Any:
    """Return the 3 x 3 convolution of each channel with its own kernel."""
    padded, (_, height, width, _) = _shifted(arrays, values), values.shape
    total = arrays.zeros_like(values)
    for row in range(3):
        for column in range(3):
            total += padded[:, row : row + height, column : column + width] * kernel[row, column]
    return total


def _deep_gradient(arrays: Any, values: Any, slope: Any) -> Any:
    padded, (_, height, width, _) = _shifted(arrays, values), values.shape
    result = arrays.zeros((3, 3, values.shape[-1]), values.dtype)
    for row in range(3):
        for column in range(3):
            part = padded[:, row : row + height, column : column + width]
            result[row, column] = arrays.einsum("bhwc,bhwc->c", part, slope)
    return result


def loss(arrays: Any, output: Any, target: Mapping[str, Any], importance: Any) -> tuple[float, Any]:
    """Return the loss and its gradient for the output.

    The score's part is the focal loss of CenterNet, which spares cells near a center; labels weigh by `importance`.
    The boxes' part is the Huber loss of the logarithms of the distances, in cells near a center.
    """
    labels = output.shape[-1] - 4
    scores, heat = output[..., :labels], target["heat"]
    probability = 1 / (1 + arrays.exp(-arrays.clip(scores, -30, 30)))
    probability = arrays.clip(probability, _TINY, 1 - _TINY)
    other, center = 1 - probability, heat == 1
    count = max(1.0, float(center.sum()))
    near = (1 - heat) ** 4
    value = arrays.where(center, -(other**2) * arrays.log(probability), -near * probability**2 * arrays.log(other))
    slope = arrays.where(
        center,
        2 * probability * other**2 * arrays.log(probability) - other**3,
        -near * (2 * probability**2 * other * arrays.log(other) - probability**3),
    )
    difference = output[..., labels:] - target["distances"]
    weight = target["weight"][..., None] * (BOX_WEIGHT / max(1.0, float(target["weight"].sum())))
    distance = arrays.abs(difference)
    small = distance < 0.1
    boxes = arrays.where(small, 5 * difference**2, distance - 0.05)
    result = arrays.concatenate(
        [
            slope * importance / count,
            weight * arrays.where(small, 10 * difference, arrays.sign(difference)),
        ],
        axis=-1,
    )
    return float((value * importance).sum() / count + (weight * boxes).sum()), result.astype("float32")


class Adam:
    """The optimizer (Loshchilov and Hutter, 2019: with decoupled decay)."""

    def __init__(self, arrays: Any, weights: Weights) -> None:
        self._arrays = arrays
        self.first = {name: arrays.zeros_like(value) for name, value in weights.items()}
        self.second = {name: arrays.zeros_like(value) for name, value in weights.items()}
        self.steps = 0

    def step(self, weights: Weights, gradients: Weights, rate: float) -> None:
        """Change the weights."""
        self.steps += 1
        for name, gradient in gradients.items():
            first = self.first[name] = 0.9 * self.first[name] + 0.1 * gradient
            second = self.second[name] = 0.99 * self.second[name] + 0.01 * gradient**2
            change = first / (1 - 0.9**self.steps) / (self._arrays.sqrt(second / (1 - 0.99**self.steps)) + 1e-7)
            weights[name] = (weights[name] * (1 - rate * DECAY) - rate * change).astype("float32")
