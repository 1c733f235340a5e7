"""A training script for the registry: learns the mean color of each label. No model service runs the result.

It shows the parts that every script has: arguments, dataset, progress, checkpoint, and output.
"""

import argparse
import json
from pathlib import Path

from model import report
from PIL import Image, ImageStat


def main() -> None:
    """Read the pictures, and write the mean color of each label."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset_file", type=Path, required=True)
    parser.add_argument("--model_output_directory", type=Path, required=True)
    parser.add_argument("--size", type=int, default=32)  # an argument of the job
    settings = parser.parse_args()
    pictures = [json.loads(line) for line in settings.dataset_file.read_text().splitlines()]
    saved = report.checkpoint_dir() / "colors.json"
    colors = json.loads(saved.read_text()) if saved.exists() else {}
    for number, picture in enumerate(pictures, 1):
        if picture["binary_data_id"] not in colors:
            with Image.open(picture["image_path"]) as image:
                small = image.convert("RGB").resize((settings.size, settings.size))
            colors[picture["binary_data_id"]] = ImageStat.Stat(small).mean
            saved.write_text(json.dumps(colors))
        report.progress(number, len(pictures))
    means: dict[str, list[float]] = {}
    labels = [
        (entry["annotation_label"], picture) for picture in pictures for entry in picture["classification_annotations"]
    ]
    for label in sorted({label for label, _ in labels}):
        own = [colors[picture["binary_data_id"]] for name, picture in labels if name == label]
        means[label] = [sum(channel) / len(own) for channel in zip(*own, strict=True)]
    right = sum(nearest(means, colors[picture["binary_data_id"]]) == label for label, picture in labels)
    report.metric("accuracy_on_training_pictures", right / max(1, len(labels)))
    (settings.model_output_directory / "colors.json").write_text(json.dumps(means))
    (settings.model_output_directory / "labels.txt").write_text("".join(f"{label}\n" for label in means))


def nearest(means: "dict[str, list[float]]", color: "list[float]") -> str:
    """Return the label with the nearest color."""
    return min(means, key=lambda label: sum((a - b) ** 2 for a, b in zip(means[label], color, strict=True)))


if __name__ == "__main__":
    main()
