"""Features of pictures, computed by ONNX Runtime, and kept in the folder of checkpoints for another start."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from training.trainers.backbone import Backbone, extractor

MAX_PIXELS: Final = 100_000_000  # a small file can claim a large picture


def calm() -> None:
    """Let numpy compute in one thread: its matrices are small here, and threads that wait cost more than they gain.

    Call this before numpy is imported.
    """
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


class Unreadable(Exception):
    """A file is not a picture that can be read."""


def picture(arrays: Any, path: str, backbone: Backbone) -> tuple[Any, str]:
    """Return a picture as the vision services of machines prepare it, and a digest of its pixels; Unreadable."""
    whole, digest = opened(path)
    return sized(arrays, whole, backbone), digest


def sized(arrays: Any, whole: Any, backbone: Backbone) -> Any:
    """Return an image as the vision services of machines prepare it."""
    from PIL import Image

    resized = whole.resize((backbone.width, backbone.height), Image.Resampling.BILINEAR)
    return arrays.asarray(resized, dtype=arrays.float32)[None]


def opened(path: str) -> tuple[Any, str]:
    """Return an image, and a digest of its pixels; Unreadable."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Unreadable(f"it has {image.width} x {image.height} pixels")
            whole = image.convert("RGB")
    except Unreadable:
        raise
    except Exception as error:  # whatever a decoder raises for a damaged file
        raise Unreadable(str(error)) from error
    return whole, hashlib.sha256(f"{whole.size}".encode() + whole.tobytes()).hexdigest()


def session_of(runtime: Any, content: bytes) -> Any:
    """Return an inference session; ValueError if the model cannot be used."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the exception classes are private
        raise ValueError(str(error).partition("\n")[0]) from error


class Extractor:
    """Computes features, or takes them from the checkpoint of an interrupted run.

    `groups` has the number of features from each output of the backbone, in their order.
    """

    def __init__(self, arrays: Any, runtime: Any, backbone: Backbone, digest: str, checkpoint: Path | None) -> None:
        self._arrays = arrays
        self._backbone = backbone
        self._digest = digest
        self._session = session_of(runtime, extractor(backbone))
        blank = arrays.zeros((1, backbone.height, backbone.width, 3), arrays.float32)
        self.groups = tuple(row.shape[1] for row in self._session.run(None, {"image": blank}))
        self._checkpoint = checkpoint / "features.npz" if checkpoint is not None else None
        self._rows: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self.resumed = self._load()

    def of(self, subject: str, path: str) -> tuple[Any, str]:
        """Return the features of a picture and the digest of its pixels; Unreadable."""
        if subject not in self._rows:
            tensor, digest = picture(self._arrays, path, self._backbone)
            self._rows[subject] = self._arrays.concatenate(self._session.run(None, {"image": tensor}), axis=1)[0]
            self._digests[subject] = digest
        return self._rows[subject], self._digests[subject]

    def save(self) -> None:
        """Write the checkpoint, completely or not at all."""
        if self._checkpoint is None or not self._rows:
            return
        about = json.dumps({"backbone": self._digest, "digests": self._digests})
        partial = self._checkpoint.with_suffix(".partial.npz")
        self._arrays.savez(partial, about=about, rows=self._arrays.stack(list(self._rows.values())))
        partial.replace(self._checkpoint)

    def _load(self) -> int:
        if self._checkpoint is None or not self._checkpoint.is_file():
            return 0
        try:
            with self._arrays.load(self._checkpoint, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                if about["backbone"] != self._digest:
                    return 0
                self._digests = dict(about["digests"])
                self._rows = dict(zip(self._digests, stored["rows"], strict=True))
        except (OSError, ValueError, KeyError):
            self._rows, self._digests = {}, {}
        return len(self._rows)
