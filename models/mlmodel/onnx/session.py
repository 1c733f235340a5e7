"""A model loaded by ONNX Runtime, with tensors of the API. Everything here blocks and runs in a worker thread."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from engine import File, FlatTensor, FlatTensors, LabelType, Metadata, TensorInfo
from models.mlmodel.labels import of_names
from models.mlmodel.tensors import data_type_of, tensor, values
from schema import ErrorKind, MachineError

_TYPES: Final[Mapping[str, str]] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""ONNX Runtime's names of the element types that the API supports -> numpy's names."""

_WIRE_TYPES: Final[Mapping[str, str]] = {"float16": "float32", "bool": "uint8"}
"""Types that the API does not have -> types that represent them."""

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "NominalRange_0_255": (0.0, 1.0),
    "Normalized_0_1": (0.0, 255.0),
    "Normalized_1_1": (127.5, 127.5),
}
"""Mean and standard deviation by the value of `Image.NominalPixelRange` (ONNX, docs/MetadataProps.md)."""


_MEMORY_SHARE: Final = 2
"""All models together may use this part of the computer's memory: one half. Motors run in the same process."""


class OnnxSession:
    """A loaded model. `metadata` is its metadata; `count` is the number of successful inferences."""

    def __init__(self, path: str, *, label_path: str, threads: int, providers: Sequence[str]) -> None:
        """Load the file. MachineError: PRECONDITION if it is unusable, UNAVAILABLE without ONNX Runtime."""
        ort = _library("onnxruntime")
        self._numpy = _library("numpy")
        file = Path(path).expanduser()
        if not file.is_file():
            raise MachineError(
                f"there is no model file {file}", kind=ErrorKind.PRECONDITION, remedy="correct model_path"
            )
        missing = [provider for provider in providers if provider not in ort.get_available_providers()]
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
        _limit_memory(ort, options)
        try:
            self._session = ort.InferenceSession(str(file), options, providers=list(providers))
        except Exception as error:  # the exception classes are private
            raise MachineError(
                f"{file} cannot be loaded: {_first_line(error)}",
                kind=ErrorKind.PRECONDITION,
                remedy="use a model in an ONNX format that this version of ONNX Runtime supports",
            ) from error
        self.count = 0
        self.providers: tuple[str, ...] = tuple(self._session.get_providers())
        self._inputs = {tensor_info.name: tensor_info for tensor_info in self._session.get_inputs()}
        self.metadata = self._metadata(file, label_path)

    def _metadata(self, path: Path, label_path: str) -> Metadata:
        model = self._session.get_modelmeta()
        custom = dict(model.custom_metadata_map)
        pictures = _picture_facts(custom)
        inputs = [_info(tensor_info, pictures) for tensor_info in self._inputs.values()]
        outputs = [_info(tensor_info, {}) for tensor_info in self._session.get_outputs()]
        if outputs and label_path:
            file = File(label_path, "one label per line", LabelType.TENSOR_VALUE)
            first = outputs[0]
            outputs[0] = TensorInfo(first.name, "", first.data_type, first.shape, (file,), {"labels": label_path})
        elif outputs and (names := of_names(custom.get("names", ""))):
            first = outputs[0]
            outputs[0] = TensorInfo(first.name, "", first.data_type, first.shape, (), {"names": list(names)})
        name = model.graph_name or path.stem
        return Metadata(name, "onnx", model.description or model.graph_description, inputs, outputs)

    def infer(self, input_tensors: FlatTensors) -> FlatTensors:
        """Run the model once. INVALID for a tensor that is missing, unknown, or of the wrong type or shape."""
        feed = {name: self._array(name, flat_tensor) for name, flat_tensor in input_tensors.tensors.items()}
        if missing := [name for name in self._inputs if name not in feed]:
            raise MachineError(f"the model needs the input {' and '.join(missing)}", kind=ErrorKind.INVALID)
        try:
            outputs = self._session.run(None, feed)
        except Exception as error:  # the exception classes are private
            raise _failed(error) from error
        self.count += 1
        names = [info.name for info in self.metadata.output_info]
        return FlatTensors({name: _flat(name, output) for name, output in zip(names, outputs, strict=True)})

    def _array(self, name: str, flat_tensor: FlatTensor) -> Any:
        model_input = self._inputs.get(name)
        if model_input is None:
            raise MachineError(
                f"the model has no input {name!r}", kind=ErrorKind.INVALID, remedy=f"it has {', '.join(self._inputs)}"
            )
        data_type = _type_of(model_input)
        wire_type = _WIRE_TYPES.get(data_type, data_type)
        if data_type_of(flat_tensor, name) != wire_type:
            raise MachineError(
                f"input {name!r} is {data_type_of(flat_tensor, name)}",
                kind=ErrorKind.INVALID,
                remedy=f"use {wire_type}",
            )
        shape = _shape(model_input)
        if len(shape) != len(flat_tensor.shape) or any(
            size not in (-1, actual) for size, actual in zip(shape, flat_tensor.shape, strict=True)
        ):
            raise MachineError(
                f"input {name!r} has the shape {list(flat_tensor.shape)}",
                kind=ErrorKind.INVALID,
                remedy=f"use {shape}, where -1 is any size",
            )
        values_array = self._numpy.frombuffer(values(flat_tensor, name), dtype=wire_type).reshape(
            tuple(flat_tensor.shape)
        )
        return values_array if wire_type == data_type else values_array.astype(data_type)


def _limit_memory(ort: Any, options: Any) -> None:
    """Let a session allocate from the arena that all sessions of this process share, and which is limited."""
    if not _arenas:
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEMORY_SHARE
        kinds = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
        settings = ort.OrtArenaCfg({"max_mem": limit, "arena_extend_strategy": 1})  # 1: only as much as is needed
        ort.create_and_register_allocator(ort.OrtMemoryInfo("Cpu", *kinds), settings)
        _arenas.append(limit)
    options.add_session_config_entry("session.use_env_allocators", "1")


_arenas: Final[list[int]] = []  # the size of the arena of this process, once it exists


def _failed(error: Exception) -> MachineError:
    text = _first_line(error)
    if "allocate" in text or "Available memory" in text:
        return MachineError(
            f"the inference needs more memory than all models may use ({_arenas[0] >> 20} MiB): {text}",
            kind=ErrorKind.EXHAUSTED,
            remedy="use a smaller model or smaller inputs",
        )
    return MachineError(f"the inference failed: {text}", kind=ErrorKind.INTERNAL)


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


def _info(tensor_info: Any, extra: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(tensor_info.name, "", _type_of(tensor_info), _shape(tensor_info), (), extra)


def _type_of(tensor_info: Any) -> str:
    data_type = _TYPES.get(tensor_info.type)
    if data_type is None:
        raise MachineError(
            f"the model's {tensor_info.name!r} is a {tensor_info.type}, which the API does not support",
            kind=ErrorKind.PRECONDITION,
            remedy="use a model whose inputs and outputs are numbers",
        )
    return data_type


def _shape(tensor_info: Any) -> list[int]:
    """Return the shape; dimensions of variable size are -1."""
    return [size if isinstance(size, int) and size >= 0 else -1 for size in tensor_info.shape]


def _picture_facts(custom: Mapping[str, str]) -> Mapping[str, Any]:
    """Return how to prepare pictures, from the standard keys of a model file."""
    facts: dict[str, Any] = {}
    if (scale := _RANGES.get(custom.get("Image.NominalPixelRange", ""))) is not None:
        facts["mean"], facts["std_dev"] = [scale[0]] * 3, [scale[1]] * 3
    if custom.get("Image.BitmapPixelFormat", "").lower().startswith("bgr"):
        facts["bgr"] = True
    return facts


def _flat(name: str, output: Any) -> FlatTensor:
    data_type = str(getattr(output, "dtype", type(output).__name__))
    wire_type = _WIRE_TYPES.get(data_type, data_type)
    if wire_type != data_type:
        output = output.astype(wire_type)
    try:
        return tensor(wire_type, output.shape, output.tobytes())
    except KeyError:
        raise MachineError(
            f"the model's {name!r} is {data_type}, which the API does not support", kind=ErrorKind.INTERNAL
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or repr(error)
