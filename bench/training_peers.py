"""What trained models are compared with: scikit-learn on raw pixels, and a small network trained from scratch."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from PIL import Image

from bench.training_sets import Sample

SIDE: Final = 32  # pixels of pictures for logistic regression and the perceptron
NETWORK_SIDE: Final = 64  # for the network
EPOCHS: Final = 20
BATCH: Final = 32


def _pixels(samples: Sequence[Sample], side: int) -> Any:
    arrays = importlib.import_module("numpy")
    resized = [sample.image.resize((side, side), Image.Resampling.BILINEAR) for sample in samples]
    return arrays.stack([arrays.asarray(image, "float32") for image in resized]) / 127.5 - 1


def logistic(training: Sequence[Sample], targets: Any, test: Sequence[Sample], seed: int, *, exclusive: bool) -> Any:
    """Return the probabilities that logistic regression on the pixels gives."""
    return _scikit("linear_model", "LogisticRegression", {"max_iter": 300}, training, targets, test, exclusive)


def perceptron(training: Sequence[Sample], targets: Any, test: Sequence[Sample], seed: int, *, exclusive: bool) -> Any:
    """Return the probabilities of a perceptron with a hidden layer."""
    values = {"hidden_layer_sizes": (128,), "random_state": seed, "max_iter": 200}
    return _scikit("neural_network", "MLPClassifier", values, training, targets, test, exclusive)


def _scikit(
    module: str,
    name: str,
    values: Mapping[str, Any],
    training: Sequence[Sample],
    targets: Any,
    test: Sequence[Sample],
    exclusive: bool,
) -> Any:
    make = getattr(importlib.import_module(f"sklearn.{module}"), name)
    rows, others = (_pixels(samples, SIDE).reshape(len(samples), -1) for samples in (training, test))
    if exclusive:
        return make(**values).fit(rows, targets.argmax(axis=1)).predict_proba(others)
    arrays = importlib.import_module("numpy")
    columns = [make(**values).fit(rows, column).predict_proba(others)[:, 1] for column in targets.T]
    return arrays.stack(columns, axis=1)


def network(training: Sequence[Sample], targets: Any, test: Sequence[Sample], seed: int, *, exclusive: bool) -> Any:
    """Return the probabilities of a small convolutional network, trained from scratch with mirrored copies."""
    torch = importlib.import_module("torch")
    torch.manual_seed(seed)
    layers, channels = [], 3
    for following in (32, 64, 128, 192):
        layers += [
            torch.nn.Conv2d(channels, following, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(following),
            torch.nn.ReLU(), torch.nn.Conv2d(following, following, 3, 1, 1, groups=following, bias=False),
            torch.nn.BatchNorm2d(following), torch.nn.ReLU(),
        ]  # fmt: skip
        channels = following
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, targets.shape[1])]
    model = torch.nn.Sequential(*layers)
    pictures = torch.from_numpy(_pixels(training, NETWORK_SIDE).transpose(0, 3, 1, 2).copy())
    truth = torch.from_numpy(targets).float()
    lossy = torch.nn.functional.cross_entropy if exclusive else torch.nn.functional.binary_cross_entropy_with_logits
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    batches = -(-len(pictures) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, EPOCHS * batches)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(pictures)).chunk(batches):
            shown = pictures[batch].flip(3) if torch.rand(()) < 0.5 else pictures[batch]
            optimizer.zero_grad()
            lossy(model(shown), truth[batch]).backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        scores = model(torch.from_numpy(_pixels(test, NETWORK_SIDE).transpose(0, 3, 1, 2).copy()))
    return (scores.softmax(1) if exclusive else scores.sigmoid()).numpy()


WAYS: Final[Mapping[str, Callable[..., Any]]] = {
    "logistic regression": logistic,
    **({"from scratch": network} if importlib.util.find_spec("torch") else {"perceptron": perceptron}),
}
"""Peers by name."""
