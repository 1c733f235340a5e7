"""A small backbone and pictures that it can tell apart, made from nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

from PIL import Image

from training.trainers import onnx_messages as onnx

SIZE: Final = 16


def backbone(*, planar: bool = True, maps: bool = False, input_name: str = "image", **changes: Any) -> bytes:
    """Return a backbone whose features are the mean colors of the four quarters of a picture.

    With the change `finer`, it has a second map, of parts with this side.
    """
    graph = onnx.MESSAGES["Graph"](name="quarters")
    shape = (1, 3, SIZE, SIZE) if planar else (1, SIZE, SIZE, 3)
    graph.input.append(onnx.value(input_name, shape))
    last = input_name
    if not planar:
        graph.node.append(onnx.node("Transpose", [last], "planes", perm=[0, 3, 1, 2]))
        last = "planes"
    half = SIZE // 2
    graph.node.append(onnx.node("AveragePool", [last], "probability", kernel_shape=[half, half], strides=[half, half]))
    side = changes.get("finer", 0)
    if side:
        graph.node.append(onnx.node("AveragePool", [last], "fine", kernel_shape=[side, side], strides=[side, side]))
    if maps and planar:
        graph.output.append(onnx.value("probability", (1, 3, 2, 2)))
    elif maps:
        graph.node.append(onnx.node("Transpose", ["probability"], "map", perm=[0, 2, 3, 1]))
        graph.output.append(onnx.value("map", (1, 2, 2, 3)))
    else:
        graph.node.append(onnx.node("Flatten", ["probability"], "features", axis=1))
        graph.output.append(onnx.value("features", (1, 12)))
    count = SIZE // side if side else 0
    if side and planar:
        graph.output.append(onnx.value("fine", (1, 3, count, count)))
    elif side:
        graph.node.append(onnx.node("Transpose", ["fine"], "finer", perm=[0, 2, 3, 1]))
        graph.output.append(onnx.value("finer", (1, count, count, 3)))
    model = onnx.MESSAGES["Model"](ir_version=changes.get("ir_version", 8), graph=graph)
    model.opset_import.add(version=changes.get("opset", 13))
    for key, value in changes.get("metadata", {"Image.NominalPixelRange": "Normalized_0_1"}).items():
        model.metadata_props.add(key=key, value=value)
    return bytes(model.SerializeToString())


COLORS: Final = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


def picture(chance: random.Random, top: str, bottom: str = "") -> Image.Image:
    """Return a noisy picture with these colors in its halves."""
    image = Image.new("RGB", (24, 24))
    for y in range(24):
        for x in range(24):
            color = COLORS[top if y < 12 or not bottom else bottom]
            image.putpixel((x, y), tuple(max(0, min(255, part + chance.randint(-40, 40))) for part in color))
    return image


class Dataset:
    """A folder as a job has it."""

    def __init__(self, folder: Path, labels: list[str], seed: int = 1) -> None:
        self.folder = folder
        self.labels = labels
        self.lines: list[str] = []
        self.chance = random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "backbone.onnx").write_bytes(backbone())
        (folder / "labels.json").write_text(json.dumps(labels))

    def add(self, labels: list[str], top: str, bottom: str = "", *, content: bytes | None = None) -> Path:
        path = self.folder / f"{len(self.lines)}.png"
        if content is None:
            picture(self.chance, top, bottom).save(path)
        else:
            path.write_bytes(content)
        entry = {
            "image_path": str(path),
            "binary_data_id": f"p{len(self.lines)}",
            "classification_annotations": [{"annotation_label": label} for label in labels],
        }
        self.lines.append(json.dumps(entry))
        return path

    def arguments(self, *more: str) -> list[str]:
        (self.folder / "dataset.jsonl").write_text("".join(f"{line}\n" for line in self.lines))
        return [
            f"--dataset_file={self.folder / 'dataset.jsonl'}",
            f"--model_output_directory={self.output}",
            f"--labels_file={self.folder / 'labels.json'}",
            f"--backbone={self.folder / 'backbone.onnx'}",
            *more,
        ]

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def report(self) -> Any:
        return json.loads((self.output / "report.json").read_text())
