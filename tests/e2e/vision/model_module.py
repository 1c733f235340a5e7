"""A module on the official Python SDK, as in its documentation: a model that finds the brightest row."""

import asyncio
from typing import Any, ClassVar

import numpy
from viam.module.module import Module
from viam.resource.easy_resource import EasyResource
from viam.services.mlmodel import Metadata, MLModel, TensorInfo


class Brightest(MLModel, EasyResource):
    MODEL: ClassVar[Any] = "acme:demo:brightest"

    async def infer(self, input_tensors: dict[str, Any], *, extra: Any = None, timeout: Any = None) -> dict[str, Any]:
        image = input_tensors["image"]
        assert image.dtype == numpy.float32, image.dtype
        rows = image[0].sum(axis=(1, 2))
        top = float(rows.argmax()) / len(rows)
        return {
            "location": numpy.array([[[0.0, top, 1.0, top + 1 / len(rows)]]], numpy.float32),
            "category": numpy.array([[1]], numpy.float32),
            "score": numpy.array([[0.75]], numpy.float32),
        }

    async def metadata(self, *, extra: Any = None, timeout: Any = None) -> Metadata:
        outputs = [TensorInfo(name=name, data_type="float32") for name in ("location", "category", "score")]
        image = TensorInfo(name="image", data_type="float32", shape=[1, 10, 20, 3])
        return Metadata(name="brightest", type="test", input_info=[image], output_info=outputs)


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
