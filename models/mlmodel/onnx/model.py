"""ML model `onnx`: a model in ONNX format, run by ONNX Runtime (extra `ml`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import trio

from engine import Attributes, Context, Extra, FlatTensors, Metadata, MLModel, Started, model
from models.mlmodel.labels import read
from models.mlmodel.onnx.attributes import OnnxConfig
from models.mlmodel.onnx.session import OnnxSession
from support import Worker


@model("rdk:builtin:onnx")
class OnnxModel(MLModel):
    """Runs inferences one after the other in a separate thread. A cancelled inference completes and is discarded."""

    Config: ClassVar[type[Attributes]] = OnnxConfig
    attributes: OnnxConfig
    _session: OnnxSession  # set by run

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._worker = Worker(str(self.name))

    async def run(self, *, task_status: Started) -> None:
        """Load the model, ready when loaded. PRECONDITION for an unusable file or provider."""
        async with self._worker.opened():
            self._session = await self._worker.run(partial(_open, self.attributes))
            metadata = self._session.metadata
            self.log.info(
                "the model is loaded",
                inputs=[f"{info.name} {info.data_type} {list(info.shape)}" for info in metadata.input_info],
                outputs=[f"{info.name} {info.data_type} {list(info.shape)}" for info in metadata.output_info],
            )
            task_status.started()
            await trio.sleep_forever()

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        """Run the model. Its float16 and bool tensors are float32 and uint8 in arguments and results."""
        return await self._worker.run(partial(self._session.infer, input_tensors))

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        """Return the metadata of the model file.

        `extra` of the first output has `labels` (path) or `names` (list) if available. `extra` of an input has `mean`,
        `std_dev` and `bgr` if the model describes how to prepare pictures.
        """
        await trio.lowlevel.checkpoint()
        return self._session.metadata

    async def get_status(self) -> dict[str, Any]:
        """Return the execution providers and the number of inferences."""
        await trio.lowlevel.checkpoint()
        return {"providers": list(self._session.providers), "inferences": self._session.count}


def _open(config: OnnxConfig) -> OnnxSession:
    labels: Sequence[str] = read(config.label_path) if config.label_path else ()
    return OnnxSession(
        config.model_path,
        label_path=config.label_path if labels else "",
        threads=config.num_threads,
        providers=config.providers,
    )
