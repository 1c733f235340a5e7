"""Vision on a whole machine in memory: removal during work. Real threads, real time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from tests.unit.models.vision import onnx_file
from tests.unit.models.vision.drawn import RED, encoded, picture

VISION, CAMERA, MODEL = "rdk:service:vision", "rdk:component:camera", "rdk:service:mlmodel"


def document(folder: Path, *, onnx: bool = False) -> dict[str, Any]:
    (folder / "image.png").write_bytes(encoded(picture((640, 480), {(100, 100, 400, 300): RED})))
    detector = {"detect_color": "#ff0000", "hue_tolerance_pct": 0.05, "segment_size_px": 50, "camera_name": "cam"}
    view = {"source": "cam", "pipeline": [{"type": "detections", "attributes": {"detector_name": "eye"}}]}
    services = [{"api": VISION, "name": "eye", "model": "color_detector", "attributes": detector}]
    if onnx:
        (folder / "model.onnx").write_bytes(onnx_file.classifier(size=224))
        model = {"model_path": str(folder / "model.onnx"), "num_threads": 1}
        services += [
            {"api": MODEL, "name": "model", "model": "onnx", "attributes": model},
            {"api": VISION, "name": "labels", "model": "mlmodel", "attributes": {"mlmodel_name": "model"}},
        ]
    return {
        "components": [
            {"api": CAMERA, "name": "cam", "model": "image_file", "attributes": {"color_path": f"{folder}/image.png"}},
            {
                "api": CAMERA,
                "name": "view",
                "model": "transform",
                "attributes": view,
            },
        ],
        "services": services,
    }


def workers() -> list[str]:
    """Return the names of resources' threads."""
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("rdk:"))


async def gone(memory: MemoryMachine) -> None:
    """Wait until no resource is left."""
    async for snapshot in memory.graph.changes():
        if not any(name.startswith("rdk:") for name in snapshot.nodes):
            return


async def test_removal_during_work_ends_calls_and_threads(tmp_path: Path) -> None:
    ends: list[ErrorKind | None] = []

    async def ask(memory: MemoryMachine, api: str, name: str, method: str, **arguments: Any) -> None:
        try:
            await memory.client().call(api, name, method, **arguments)
            ends.append(None)
        except MachineError as error:
            ends.append(error.kind)

    async with open_machine(document(tmp_path)) as memory:
        await memory.machine.lifecycle.running.wait()
        assert workers() == [f"{CAMERA}/view", f"{VISION}/eye"]
        async with trio.open_nursery() as nursery:
            for _ in range(15):
                nursery.start_soon(lambda: ask(memory, VISION, "eye", "get_detections_from_camera", camera_name="cam"))
                nursery.start_soon(lambda: ask(memory, CAMERA, "view", "get_images"))
            while not ends:
                await trio.lowlevel.checkpoint()
            memory.write({})
            await gone(memory)
            assert workers() == []
    assert len(ends) == 30
    assert set(ends) <= {None, ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND}
    assert ErrorKind.UNAVAILABLE in ends


async def test_a_changed_camera_restarts_the_service_that_looks_through_it(tmp_path: Path) -> None:
    expected = document(tmp_path)
    async with open_machine(expected) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        (item,) = await client.call(VISION, "eye", "get_detections_from_camera", camera_name="")
        assert item["x_min"] == 100
        (tmp_path / "other.png").write_bytes(encoded(picture((640, 480), {(7, 100, 400, 300): RED})))
        expected["components"][0]["attributes"]["color_path"] = str(tmp_path / "other.png")
        memory.write(expected)
        with trio.fail_after(30):
            while True:
                try:
                    (item,) = await client.call(VISION, "eye", "get_detections_from_camera", camera_name="")
                except MachineError:
                    await trio.lowlevel.checkpoint()
                    continue
                if item["x_min"] == 7:
                    break


async def test_a_model_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra ml (onnxruntime) is not installed")
    expected = document(tmp_path, onnx=True)
    (tmp_path / "model.onnx").rename(tmp_path / "later.onnx")
    async with open_machine(expected) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match="waiting for") as caught:
            await memory.client().call(VISION, "labels", "get_classifications_from_camera", camera_name="cam")
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        with pytest.raises(MachineError, match="there is no model file"):
            await memory.client().call(MODEL, "model", "metadata")
        (tmp_path / "later.onnx").rename(tmp_path / "model.onnx")
        memory.graph.retry(f"{MODEL}/model")
        with trio.fail_after(30):
            async for snapshot in memory.graph.changes():
                if snapshot.nodes[f"{VISION}/labels"].state.value == "ready":
                    break
        answer = await memory.client().call(VISION, "labels", "get_classifications_from_camera", camera_name="cam", n=1)
        assert answer[0]["class_name"] == "0"
