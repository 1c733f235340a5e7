"""Vision service `mlmodel`: an ML model used as a detector or classifier of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Classification, Detection, FlatTensor, FlatTensors, Metadata, MLModel, TensorInfo, model
from models.mlmodel.labels import label, read
from models.vision.common.pictures import decode
from models.vision.common.results import ConfidenceFilter, detection, without_duplicates
from models.vision.common.service import Abilities, VisionService
from models.vision.mlmodel.attributes import ModelVisionConfig
from models.vision.mlmodel.layouts import BOXES
from models.vision.mlmodel.model_input import InputShape, Placement, Scale, fill, place, shape_of
from models.vision.mlmodel.model_output import Roles, TensorReading, boxes, probabilities, roles_of
from schema import ErrorKind, MachineError

IMAGE: Final = "image"  # the role of the input for the picture
YOLO_MIN_CONFIDENCE: Final = 0.25  # default lowest confidence for boxes of single-tensor detectors
YOLO_SCALE: Final = Scale(deviation=(255.0, 255.0, 255.0))  # these models are trained with 0 to 1


@model("rdk:builtin:mlmodel")
class ModelVision(VisionService):
    """Derives input and output formats from the metadata of the model; errors name missing information."""

    Config: ClassVar[type[Attributes]] = ModelVisionConfig
    attributes: ModelVisionConfig
    # set by prepare
    _model: MLModel
    _shape: InputShape
    _scale: Scale
    _roles: Roles
    _labels: Sequence[str]
    _filter: ConfidenceFilter
    _bgr: bool

    async def prepare(self) -> None:
        """Read the metadata of the model. PRECONDITION if its input or outputs are not supported."""
        config = self.attributes
        self._model = self.dependency(MLModel, config.mlmodel_name)
        metadata = await self._model.metadata()
        info = _image_input(metadata, config)
        self._shape = _with_size(shape_of(info), config.input_size_px)
        self._labels = await self.work(partial(_labels, metadata, config.label_path))
        outputs = metadata.output_info or [TensorInfo(name) for name in config.remap_output_names]
        self._roles = roles_of(outputs, config.remap_output_names, len(self._labels), config.output_layout)
        yolo = self._roles.layout not in ("", BOXES)
        self._scale = _scale(info, config, YOLO_SCALE if yolo else Scale())
        self._bgr = bool(info.extra.get("bgr")) if config.input_image_bgr is None else config.input_image_bgr
        minimum = config.default_minimum_confidence
        self._filter = ConfidenceFilter(
            (YOLO_MIN_CONFIDENCE if yolo else 0.0) if minimum is None else minimum,
            {name.lower(): limit for name, limit in config.label_confidences.items()},
        )
        self.abilities = Abilities(detects=self._roles.detects, classifies=self._roles.classifies)
        self.log.info("the inputs and outputs of the model are recognized", **await self.get_status())

    async def _infer(self, image: bytes, mime_type: str) -> tuple[Mapping[str, FlatTensor], Placement, tuple[int, int]]:
        tensor, placement, size = await self.work(partial(self._input_tensor, image, mime_type))
        try:
            outputs = await self._model.infer(FlatTensors({self._shape.name: tensor}))
        except MachineError as error:
            if error.kind is not ErrorKind.INTERNAL or error.remedy or (self._shape.width and self._shape.height):
                raise
            # Models that state any size may fail with most sizes.
            width, height = size
            remedy = f"if it cannot use pictures of {width} x {height} pixels, set input_size_px of {self.name.short}"
            raise MachineError(error.message, kind=error.kind, remedy=remedy) from error
        return outputs.tensors, placement, size

    def _input_tensor(self, image: bytes, mime_type: str) -> tuple[FlatTensor, Placement, tuple[int, int]]:
        picture = decode(image, mime_type)
        placed, placement = place(picture, self._shape, letterbox=self.attributes.letterbox)
        return fill(placed, self._shape, self._scale, bgr=self._bgr), placement, picture.size

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Return the detections, most confident first."""
        tensors, placement, size = await self._infer(image, mime_type)
        return await self.work(partial(self._detections, tensors, placement, size))

    def _detections(
        self, tensors: Mapping[str, FlatTensor], placement: Placement, size: tuple[int, int]
    ) -> Sequence[Detection]:
        config, roles = self.attributes, self._roles
        input_size = (self._shape.width or size[0], self._shape.height or size[1])
        candidates = boxes(
            tensors, roles, TensorReading(self._filter.lowest, config.xmin_ymin_xmax_ymax_order, input_size)
        )
        if roles.layout in ("yolov5", "yolov8"):
            candidates = without_duplicates(candidates, config.overlap_threshold)
        detections = (detection(placement.back(box), label(self._labels, box.category), *size) for box in candidates)
        return [
            result
            for result in detections
            if result is not None and self._filter.passes(result.class_name, result.confidence)
        ]

    async def classify(self, image: bytes, mime_type: str) -> Sequence[Classification]:
        """Return every label with sufficient confidence."""
        tensors, _, _ = await self._infer(image, mime_type)
        name = self._roles.tensors["probability"]
        if name not in tensors:
            raise MachineError(f"the model returned no tensor {name!r}", kind=ErrorKind.INTERNAL)
        probability_by_class = enumerate(probabilities(tensors[name], name))
        labelled = (
            Classification(label(self._labels, index), float(probability))
            for index, probability in probability_by_class
        )
        return [
            classification
            for classification in labelled
            if self._filter.passes(classification.class_name, classification.confidence)
        ]

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


def _image_input(metadata: Metadata, config: ModelVisionConfig) -> TensorInfo:
    """Return the input for the picture. PRECONDITION if that is ambiguous.

    A model without input metadata receives the unchanged picture as bytes.
    """
    if not metadata.input_info:
        return TensorInfo(next(iter(config.remap_input_names), IMAGE), "", "uint8")
    names = {info.name: config.remap_input_names.get(info.name, info.name).lower() for info in metadata.input_info}
    named = [info for info in metadata.input_info if names[info.name] == IMAGE]
    candidates = named or list(metadata.input_info)
    if len(candidates) != 1:
        raise MachineError(
            f"the model has the inputs {', '.join(names) or '(none)'}; it is not clear which of them is the image",
            kind=ErrorKind.PRECONDITION,
            remedy='map its name to "image" in remap_input_names',
        )
    return candidates[0]


def _with_size(shape: InputShape, size: Sequence[int]) -> InputShape:
    if not size:
        return shape
    return replace(shape, width=shape.width or size[0], height=shape.height or size[1])


def _scale(info: TensorInfo, config: ModelVisionConfig, default: Scale) -> Scale:
    """Return the configured scale, that of the metadata, or the usual one of the layout."""
    mean = config.input_image_mean_value or _three_numbers(info.extra.get("mean"))
    deviation = config.input_image_std_dev or _three_numbers(info.extra.get("std_dev"))
    deviation = deviation if 0 not in deviation else ()
    if not mean and not deviation:
        return default
    first, second = mean or default.mean, deviation or Scale().deviation
    return Scale((first[0], first[1], first[2]), (second[0], second[1], second[2]))


def _three_numbers(value: Any) -> tuple[float, ...]:
    """Return three numbers of metadata; empty if the value has another form."""
    if (
        not isinstance(value, Sequence)
        or len(value) != 3
        or not all(isinstance(number, (int, float)) for number in value)
    ):
        return ()
    return tuple(float(number) for number in value)


def _labels(metadata: Metadata, path: str) -> Sequence[str]:
    """Return the labels of the configured file, else of the metadata of the outputs, else none."""
    if path:
        return read(path)
    for info in metadata.output_info:
        names = info.extra.get("names")
        if isinstance(names, Sequence) and not isinstance(names, str):
            return tuple(str(name) for name in names)
        if isinstance(file := info.extra.get("labels"), str) and file:
            return read(file)
    return ()
