"""Vision service `mlmodel`: an ML model used as a detector or classifier of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

import trio

from catalogue.vision.mlmodel import ModelVisionConfig
from catalogue.vision.model_output import BOXES
from runtime.engine.resource import Attributes
from runtime.engine.services.mlmodel import FlatTensor, FlatTensors, Metadata, MLModel, TensorInfo
from runtime.engine.services.vision import Classification, Detection
from runtime.models.mlmodels.labels import label, read
from runtime.models.vision.found import Sieve, detection, without_doubles
from runtime.models.vision.model_input import InputShape, Placement, Scale, fill, place, shape_of
from runtime.models.vision.model_output import Reading, Roles, boxes, probabilities, roles_of
from runtime.models.vision.pictures import decode
from runtime.models.vision.service import Abilities, Seeing
from schema.errors import ErrorKind, MachineError

IMAGE: Final = "image"  # the role of the input for the picture
YOLO_LEAST: Final = 0.25  # default lowest confidence for boxes of single-tensor detectors
YOLO_SCALE: Final = Scale(deviation=(255.0, 255.0, 255.0))  # these models are trained with 0 to 1


class ModelVision(Seeing):
    """Derives input and output formats from the metadata of the model; errors name missing information."""

    Config: ClassVar[type[Attributes]] = ModelVisionConfig
    attributes: ModelVisionConfig
    # set by prepare
    _model: MLModel
    _shape: InputShape
    _scale: Scale
    _roles: Roles
    _labels: Sequence[str]
    _sieve: Sieve
    _bgr: bool

    async def prepare(self) -> None:
        """Read the metadata of the model. PRECONDITION if its input or outputs are not supported."""
        config = self.attributes
        self._model = self.dependency(MLModel, config.mlmodel_name)
        told = await self._model.metadata()
        info = _input(told, config)
        self._shape = _sized(shape_of(info), config.input_size_px)
        self._labels = await self.work(partial(_labels, told, config.label_path))
        outputs = told.output_info or [TensorInfo(name) for name in config.remap_output_names]
        self._roles = roles_of(outputs, config.remap_output_names, len(self._labels), config.output_layout)
        yolo = self._roles.layout not in ("", BOXES)
        self._scale = _scale(info, config, YOLO_SCALE if yolo else Scale())
        self._bgr = bool(info.extra.get("bgr")) if config.input_image_bgr is None else config.input_image_bgr
        least = config.default_minimum_confidence
        self._sieve = Sieve(
            (YOLO_LEAST if yolo else 0.0) if least is None else least,
            {name.lower(): limit for name, limit in config.label_confidences.items()},
        )
        self.abilities = Abilities(detects=self._roles.detects, classifies=self._roles.classifies)
        self.log.info("the inputs and outputs of the model are recognized", **await self.get_status())

    async def _infer(self, image: bytes, mime_type: str) -> tuple[Mapping[str, FlatTensor], Placement, tuple[int, int]]:
        given, placement, size = await self.work(partial(self._show, image, mime_type))
        answer = await self._model.infer(FlatTensors({self._shape.name: given}))
        return answer.tensors, placement, size

    def _show(self, image: bytes, mime_type: str) -> tuple[FlatTensor, Placement, tuple[int, int]]:
        picture = decode(image, mime_type)
        placed, placement = place(picture, self._shape, letterbox=self.attributes.letterbox)
        return fill(placed, self._shape, self._scale, bgr=self._bgr), placement, picture.size

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Return the detections, most confident first."""
        tensors, placement, size = await self._infer(image, mime_type)
        return await self.work(partial(self._read, tensors, placement, size))

    def _read(
        self, tensors: Mapping[str, FlatTensor], placement: Placement, size: tuple[int, int]
    ) -> Sequence[Detection]:
        config, roles = self.attributes, self._roles
        shown = (self._shape.width or size[0], self._shape.height or size[1])
        found = boxes(tensors, roles, Reading(self._sieve.lowest, config.xmin_ymin_xmax_ymax_order, shown))
        if roles.layout in ("yolov5", "yolov8"):
            found = without_doubles(found, config.overlap_threshold)
        known = (detection(placement.back(box), label(self._labels, box.category), *size) for box in found)
        return [one for one in known if one is not None and self._sieve.passes(one.class_name, one.confidence)]

    async def classify(self, image: bytes, mime_type: str) -> Sequence[Classification]:
        """Return every label with sufficient confidence."""
        tensors, _, _ = await self._infer(image, mime_type)
        name = self._roles.tensors["probability"]
        if name not in tensors:
            raise MachineError(f"the model returned no tensor {name!r}", kind=ErrorKind.INTERNAL)
        shares = enumerate(probabilities(tensors[name], name))
        labelled = (Classification(label(self._labels, index), float(share)) for index, share in shares)
        return [one for one in labelled if self._sieve.passes(one.class_name, one.confidence)]

    async def get_status(self) -> Mapping[str, Any]:
        """Return the input and outputs derived from the metadata."""
        await trio.lowlevel.checkpoint()
        shape = self._shape
        return {
            "model": self.attributes.mlmodel_name,
            "input": f"{shape.name}: {shape.data_type}, {shape.width or 'any'} x {shape.height or 'any'}",
            "outputs": dict(self._roles.tensors),
            "layout": self._roles.layout or "classes",
            "labels": len(self._labels),
        }


def _input(told: Metadata, config: ModelVisionConfig) -> TensorInfo:
    """Return the input for the picture. PRECONDITION if that is ambiguous.

    A model without input metadata receives the unchanged picture as bytes.
    """
    if not told.input_info:
        return TensorInfo(next(iter(config.remap_input_names), IMAGE), "", "uint8")
    names = {info.name: config.remap_input_names.get(info.name, info.name).lower() for info in told.input_info}
    named = [info for info in told.input_info if names[info.name] == IMAGE]
    found = named or list(told.input_info)
    if len(found) != 1:
        raise MachineError(
            f"the model has the inputs {', '.join(names) or '(none)'}; it is not clear which of them is the image",
            kind=ErrorKind.PRECONDITION,
            remedy='map its name to "image" in remap_input_names',
        )
    return found[0]


def _sized(shape: InputShape, size: Sequence[int]) -> InputShape:
    if not size:
        return shape
    return replace(shape, width=shape.width or size[0], height=shape.height or size[1])


def _scale(info: TensorInfo, config: ModelVisionConfig, usual: Scale) -> Scale:
    """Return the configured scale, that of the metadata, or the usual one of the layout."""
    mean = config.input_image_mean_value or _three(info.extra.get("mean"))
    deviation = config.input_image_std_dev or _three(info.extra.get("std_dev"))
    deviation = deviation if 0 not in deviation else ()
    if not mean and not deviation:
        return usual
    first, second = mean or usual.mean, deviation or Scale().deviation
    return Scale((first[0], first[1], first[2]), (second[0], second[1], second[2]))


def _three(given: Any) -> tuple[float, ...]:
    """Return three numbers of metadata; empty if the value has another form."""
    if not isinstance(given, Sequence) or len(given) != 3 or not all(isinstance(one, (int, float)) for one in given):
        return ()
    return tuple(float(one) for one in given)


def _labels(told: Metadata, path: str) -> Sequence[str]:
    """Return the labels of the configured file, else of the metadata of the outputs, else none."""
    if path:
        return read(path)
    for info in told.output_info:
        names = info.extra.get("names")
        if isinstance(names, Sequence) and not isinstance(names, str):
            return tuple(str(name) for name in names)
        if isinstance(file := info.extra.get("labels"), str) and file:
            return read(file)
    return ()
