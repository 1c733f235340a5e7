"""Features of pictures, computed by ONNX Runtime, and kept in the folder of checkpoints for another start."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

from schema import MachineError
from support.media.pictures import decode
from training.trainers.backbone import Backbone, extractor
from training.trainers.pooled import Basis, basis_of

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
    try:
        whole = decode(Path(path).read_bytes(), max_pixels=MAX_PIXELS)
    except (MachineError, OSError) as error:
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

    `groups` has the number of features from each output of the backbone, in their order. Call `prepare` first.
    """

    def __init__(self, arrays: Any, runtime: Any, backbone: Backbone, digest: str, checkpoint: Path | None) -> None:
        self._arrays = arrays
        self._backbone = backbone
        self._digest = digest
        self._session = session_of(runtime, extractor(backbone))
        self._checkpoint = checkpoint / "features.npz" if checkpoint is not None else None
        self.groups = tuple(count for _, _, count in backbone.maps) if backbone.grid else self._sizes()
        self.basis: Basis | None = None
        self._rows: dict[str, Any] = {}
        self._cells: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self.resumed = self._load()

    def prepare(self, sample: Sequence[tuple[str, str]]) -> None:
        """Compute the basis of the cells from some pictures (id, path) of the training.

        Without a grid of the backbone, or after an interruption, there is nothing to do.
        """
        if self._backbone.grid is None or self.basis is not None:
            return
        raw: dict[str, Any] = {}
        for subject, path in sample:
            with suppress(Unreadable):  # `of` reports it
                raw[subject], self._digests[subject] = self._computed(path)
        if not raw:
            return
        cells = self._arrays.concatenate(list(raw.values()))
        self.basis = basis_of(self._arrays, cells, self.groups)
        for subject, own in raw.items():
            self._add(subject, own)

    def of(self, subject: str, path: str) -> tuple[tuple[Any, Any], str]:
        """Return the averaged features and the reduced cells or None of a picture, and the digest of its pixels.

        Unreadable says what is wrong with it.
        """
        if subject not in self._rows:
            own, self._digests[subject] = self._computed(path)
            self._add(subject, own)
        return (self._rows[subject], self._cells.get(subject)), self._digests[subject]

    def _computed(self, path: str) -> tuple[Any, str]:
        """Return the features of each cell [cells, features], and the digest; without a grid, a picture is one cell."""
        tensor, digest = picture(self._arrays, path, self._backbone)
        outputs = self._session.run(None, {"image": tensor})
        if self._backbone.grid is None:
            return self._arrays.concatenate(outputs, axis=1), digest
        return outputs[0][0].reshape(outputs[0].shape[1], -1).T, digest

    def _add(self, subject: str, own: Any) -> None:
        self._rows[subject] = own.mean(axis=0)
        if self.basis is not None:
            self._cells[subject] = self.basis.reduced(self._arrays, own)

    def _sizes(self) -> tuple[int, ...]:
        blank = self._arrays.zeros((1, self._backbone.height, self._backbone.width, 3), self._arrays.float32)
        return tuple(row.shape[1] for row in self._session.run(None, {"image": blank}))

    def save(self) -> None:
        """Write the checkpoint, completely or not at all."""
        if self._checkpoint is None or not self._rows:
            return
        arrays, subjects = self._arrays, list(self._rows)
        digests = {subject: self._digests[subject] for subject in subjects}
        content = {"rows": arrays.stack([self._rows[subject] for subject in subjects])}
        if self.basis is not None:
            content["cells"] = arrays.stack([self._cells[subject] for subject in subjects])
            content |= {name: getattr(self.basis, name) for name in _BASIS}
        partial = self._checkpoint.with_suffix(".partial.npz")
        arrays.savez(partial, about=json.dumps({"backbone": self._digest, "digests": digests}), **content)
        partial.replace(self._checkpoint)

    def _load(self) -> int:
        if self._checkpoint is None or not self._checkpoint.is_file():
            return 0
        try:
            with self._arrays.load(self._checkpoint, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                if about["backbone"] != self._digest:
                    return 0
                digests = dict(about["digests"])
                rows = dict(zip(digests, stored["rows"], strict=True))
                if self._backbone.grid is not None:
                    self._cells = dict(zip(digests, stored["cells"], strict=True))
                    self.basis = Basis(**{name: stored[name] for name in _BASIS})
                self._rows, self._digests = rows, digests
        except (OSError, ValueError, KeyError, BadZipFile):
            self._rows, self._cells, self._digests, self.basis = {}, {}, {}, None
        return len(self._rows)


_BASIS: Final = tuple(field.name for field in fields(Basis))
