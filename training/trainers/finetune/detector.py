"""The head of the detector and its loss as tensors of PyTorch: the same numbers as those of `detectors.network`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from training.trainers.backbone import Backbone
from training.trainers.detection import Scaling, scaled
from training.trainers.detectors import graph
from training.trainers.detectors.network import BLOCKS, BOX_WEIGHT, WIDTH, Weights
from training.trainers.finetune.network import FeatureNetwork

_TINY: Final = 1e-6


def forward(torch: Any, weights: Mapping[str, Any], maps: Sequence[Any]) -> Any:
    """Return the output [pictures, height, width, labels + 4] for maps [pictures, channels, height, width]."""
    convolution, size = torch.nn.functional.conv2d, maps[0].shape[2]
    total = weights["bias"][:, None, None]
    for number, values in enumerate(maps):
        total = total + _enlarged(convolution(values, _point(weights[f"map{number}"])), size // values.shape[2])
    current = total.relu()
    for block in BLOCKS:
        kernel = weights[f"deep{block}"].permute(2, 0, 1)[:, None]
        mixed = convolution(current, kernel, padding=1, groups=WIDTH)
        current = current + convolution(mixed, _point(weights[f"point{block}"]), weights[f"shift{block}"]).relu()
    return convolution(current, _point(weights["out"]), weights["out_bias"]).permute(0, 2, 3, 1)


def _point(kernel: Any) -> Any:
    return kernel.T[:, :, None, None]


def _enlarged(values: Any, factor: int) -> Any:
    pictures, channels, height, width = values.shape
    wide = values[:, :, :, None, :, None].expand(-1, -1, -1, factor, -1, factor)
    return wide.reshape(pictures, channels, height * factor, width * factor)


def loss(torch: Any, output: Any, target: Mapping[str, Any], importance: Any) -> Any:
    """Return the loss of `detectors.network`."""
    labels = output.shape[-1] - 4
    heat, weight = target["heat"], target["weight"]
    probability = output[..., :labels].clamp(-30, 30).sigmoid().clamp(_TINY, 1 - _TINY)
    other, center = 1 - probability, heat == 1
    value = torch.where(
        center, -(other**2) * probability.log(), -((1 - heat) ** 4) * probability**2 * other.log()
    )  # fmt: skip
    distance = (output[..., labels:] - target["distances"]).abs()
    boxes = torch.where(distance < 0.1, 5 * distance**2, distance - 0.05)
    scores = (value * importance).sum() / center.sum().clamp(min=1)
    return scores + BOX_WEIGHT * (weight[..., None] * boxes).sum() / weight.sum().clamp(min=1)


class DetectorNetwork:
    """A network with the head of a detector. `parameters` has everything that is trained, by name."""

    def __init__(
        self, torch: Any, backbone: Backbone, network: FeatureNetwork, weights: Weights, scaling: Scaling
    ) -> None:
        self._torch, self.network = torch, network
        self._maps = [name for name, _ in graph.maps_of(backbone)]
        self._scaling = scaling

        def tensor(numbers: Any) -> Any:
            return torch.tensor(numbers, dtype=torch.float32, device=network.device)

        self._scales = [
            (tensor(center)[:, None, None], tensor(spread)[:, None, None]) for center, spread in scaling
        ]  # fmt: skip
        self.head = {f"head/{name}": tensor(numbers).requires_grad_() for name, numbers in weights.items()}

    @property
    def parameters(self) -> dict[str, Any]:
        """All tensors that are trained."""
        return {**self.network.trained, **self.head}

    def output(self, pictures: Any) -> Any:
        """Return the output for pictures [count, height, width, 3] with values of 0 to 255."""
        outputs = self.network.outputs(pictures)
        maps = [
            (outputs[name] - center) / spread
            for name, (center, spread) in zip(self._maps, self._scales, strict=True)
        ]  # fmt: skip
        return forward(self._torch, {name.partition("/")[2]: each for name, each in self.head.items()}, maps)

    def weights(self) -> Weights:
        """Return the head for maps as the network gives them now."""
        numbers = {name.partition("/")[2]: each.detach().cpu().numpy() for name, each in self.head.items()}
        return scaled(numbers, self._scaling)

    def state(self) -> dict[str, Any]:
        """Return copies of all tensors that are trained."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.parameters.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the tensors to those of `state`."""
        with self._torch.no_grad():
            for name, tensor in self.parameters.items():
                tensor.copy_(state[name])
