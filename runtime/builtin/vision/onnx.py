"""ML model `onnx`: a model file in the ONNX format, run by ONNX Runtime (extra `ml`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import trio

from catalogue.vision.onnx import OnnxConfig
from runtime.builtin.vision.labels import read
from runtime.builtin.vision.onnx_session import OnnxSession
from runtime.resource import Attributes, Context, Extra, Started
from runtime.services.mlmodel import FlatTensors, Metadata, MLModel
from support.worker import Worker


class OnnxModel(MLModel):
    """Inferences one after the other, in a thread of their own; a cancelled one is finished and dropped."""

    Config: ClassVar[type[Attributes]] = OnnxConfig
    attributes: OnnxConfig
    _session: OnnxSession  # set by run

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._worker = Worker(str(self.name))

    async def run(self, *, task_status: Started) -> None:
        """Ready when the model is loaded. PRECONDITION names what is wrong with a file or a provider."""
        async with self._worker.opened():
            self._session = await self._worker.run(partial(_open, self.attributes))
            told = self._session.told
            self.log.info(
                "the model is loaded",
                inputs=[f"{one.name} {one.data_type} {list(one.shape)}" for one in told.input_info],
                outputs=[f"{one.name} {one.data_type} {list(one.shape)}" for one in told.output_info],
            )
            task_status.started()
            await trio.sleep_forever()

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        """float16 and bool of a model are float32 and uint8 here, both ways."""
        return await self._worker.run(partial(self._session.infer, input_tensors))

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        """As the model file tells. `extra` of the first output has `labels` (path) or `names` (list) if there are any.

        `extra` of an input has `mean`, `std_dev` and `bgr` where the model tells how its pictures are to be prepared.
        """
        await trio.lowlevel.checkpoint()
        return self._session.told

    async def get_status(self) -> dict[str, Any]:
        """Where it runs, and how often it has."""
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
