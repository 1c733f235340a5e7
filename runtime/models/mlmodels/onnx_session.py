"""A model loaded by ONNX Runtime, with tensors of the API. Everything here blocks and runs in a worker thread."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from runtime.engine.services.mlmodel import File, FlatTensor, FlatTensors, LabelType, Metadata, TensorInfo
from runtime.models.mlmodels.labels import of_names
from runtime.models.mlmodels.tensors import data_type_of, tensor, values
from schema.errors import ErrorKind, MachineError

_TYPES: Final[Mapping[str, str]] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""ONNX Runtime's names of the element types that the API supports -> numpy's names."""

_CARRIED: Final[Mapping[str, str]] = {"float16": "float32", "bool": "uint8"}
"""Types that the API does not have -> types that represent them."""

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "NominalRange_0_255": (0.0, 1.0),
    "Normalized_0_1": (0.0, 255.0),
    "Normalized_1_1": (127.5, 127.5),
}
"""Mean and standard deviation by the value of `Image.NominalPixelRange` (ONNX, docs/MetadataProps.md)."""


class OnnxSession:
    """A loaded model. `told` is its metadata; `count` is the number of successful inferences."""

    def __init__(self, path: str, *, label_path: str, threads: int, providers: Sequence[str]) -> None:
        """Load the file. MachineError: PRECONDITION if it is unusable, UNAVAILABLE without ONNX Runtime."""
        ort = _library("onnxruntime")
        self._numpy = _library("numpy")
        place = Path(path).expanduser()
        if not place.is_file():
            raise MachineError(
                f"there is no model file {place}", kind=ErrorKind.PRECONDITION, remedy="correct model_path"
            )
        missing = [one for one in providers if one not in ort.get_available_providers()]
        if missing:
            raise MachineError(
                f"the installed ONNX Runtime does not support {' and '.join(missing)}",
                kind=ErrorKind.PRECONDITION,
                remedy=f"use {', '.join(ort.get_available_providers())}, or install a build that supports it",
            )
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # log errors only; they are also raised
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads use no processor time
        try:
            self._session = ort.InferenceSession(str(place), options, providers=list(providers))
        except Exception as error:  # the exception classes are private
            raise MachineError(
                f"{place} cannot be loaded: {_first_line(error)}",
                kind=ErrorKind.PRECONDITION,
                remedy="use a model in an ONNX format that this version of ONNX Runtime supports",
            ) from error
        self.count = 0
        self.providers: tuple[str, ...] = tuple(self._session.get_providers())
        self._inputs = {one.name: one for one in self._session.get_inputs()}
        self.told = self._metadata(place, label_path)

    def _metadata(self, place: Path, label_path: str) -> Metadata:
        model = self._session.get_modelmeta()
        custom = dict(model.custom_metadata_map)
        pictures = _picture_facts(custom)
        inputs = [_info(one, pictures) for one in self._inputs.values()]
        outputs = [_info(one, {}) for one in self._session.get_outputs()]
        if outputs and label_path:
            file = File(label_path, "one label per line", LabelType.TENSOR_VALUE)
            first = outputs[0]
            outputs[0] = TensorInfo(first.name, "", first.data_type, first.shape, (file,), {"labels": label_path})
        elif outputs and (names := of_names(custom.get("names", ""))):
            first = outputs[0]
            outputs[0] = TensorInfo(first.name, "", first.data_type, first.shape, (), {"names": list(names)})
        name = model.graph_name or place.stem
        return Metadata(name, "onnx", model.description or model.graph_description, inputs, outputs)

    def infer(self, given: FlatTensors) -> FlatTensors:
        """Run the model once. INVALID for a tensor that is missing, unknown, or of the wrong type or shape."""
        feed = {name: self._array(name, one) for name, one in given.tensors.items()}
        if lacking := [name for name in self._inputs if name not in feed]:
            raise MachineError(f"the model needs the input {' and '.join(lacking)}", kind=ErrorKind.INVALID)
        try:
            found = self._session.run(None, feed)
        except Exception as error:  # the exception classes are private
            raise MachineError(f"the inference failed: {_first_line(error)}", kind=ErrorKind.INTERNAL) from error
        self.count += 1
        names = [one.name for one in self.told.output_info]
        return FlatTensors({name: _flat(name, one) for name, one in zip(names, found, strict=True)})

    def _array(self, name: str, given: FlatTensor) -> Any:
        wanted = self._inputs.get(name)
        if wanted is None:
            raise MachineError(
                f"the model has no input {name!r}", kind=ErrorKind.INVALID, remedy=f"it has {', '.join(self._inputs)}"
            )
        data_type = _type_of(wanted)
        carried = _CARRIED.get(data_type, data_type)
        if data_type_of(given, name) != carried:
            raise MachineError(
                f"input {name!r} is {data_type_of(given, name)}", kind=ErrorKind.INVALID, remedy=f"use {carried}"
            )
        shape = _shape(wanted)
        if len(shape) != len(given.shape) or any(
            size not in (-1, actual) for size, actual in zip(shape, given.shape, strict=True)
        ):
            raise MachineError(
                f"input {name!r} has the shape {list(given.shape)}",
                kind=ErrorKind.INVALID,
                remedy=f"use {shape}, where -1 is any size",
            )
        flat = self._numpy.frombuffer(values(given, name), dtype=carried).reshape(tuple(given.shape))
        return flat if carried == data_type else flat.astype(data_type)


def _library(name: str) -> Any:
    """Import a library of the extra `ml`. UNAVAILABLE if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MachineError(
            f"ONNX Runtime is not installed: {error}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="install machine-runtime with its extra ml: pip install 'machine-runtime[ml]'",
        ) from error


def _info(one: Any, extra: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(one.name, "", _type_of(one), _shape(one), (), extra)


def _type_of(one: Any) -> str:
    found = _TYPES.get(one.type)
    if found is None:
        raise MachineError(
            f"the model's {one.name!r} is a {one.type}, which the API does not support",
            kind=ErrorKind.PRECONDITION,
            remedy="use a model whose inputs and outputs are numbers",
        )
    return found


def _shape(one: Any) -> list[int]:
    """Return the shape; dimensions of variable size are -1."""
    return [size if isinstance(size, int) and size >= 0 else -1 for size in one.shape]


def _picture_facts(custom: Mapping[str, str]) -> Mapping[str, Any]:
    """Return how to prepare pictures, from the standard keys of a model file."""
    facts: dict[str, Any] = {}
    if (found := _RANGES.get(custom.get("Image.NominalPixelRange", ""))) is not None:
        facts["mean"], facts["std_dev"] = [found[0]] * 3, [found[1]] * 3
    if custom.get("Image.BitmapPixelFormat", "").lower().startswith("bgr"):
        facts["bgr"] = True
    return facts


def _flat(name: str, found: Any) -> FlatTensor:
    data_type = str(getattr(found, "dtype", type(found).__name__))
    carried = _CARRIED.get(data_type, data_type)
    if carried != data_type:
        found = found.astype(carried)
    try:
        return tensor(carried, found.shape, found.tobytes())
    except KeyError:
        raise MachineError(
            f"the model's {name!r} is {data_type}, which the API does not support", kind=ErrorKind.INTERNAL
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or repr(error)
