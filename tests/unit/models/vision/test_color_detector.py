"""The color detector as a service, and behavior common to all vision services here."""

from __future__ import annotations

from typing import Any

import pytest

from engine.components.media.camera import Image
from engine.resource import Unsupported
from engine.services.vision import Detection, VisionProperties
from models.vision.color_detector.attributes import ColorDetectorConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.vision.drawn import GREEN, RED, DrawnCamera, encoded, picture

RED_ONLY = {"detect_color": "#ff0000", "hue_tolerance_pct": 0.05, "segment_size_px": 50}


async def detector(bench: Bench, **attributes: Any) -> Any:
    await bench.add("camera", "cam", cls=DrawnCamera)
    return await bench.add(
        "rdk:service:vision", "eye", {**RED_ONLY, **attributes}, model="color_detector", depends_on=("cam",)
    )


EXPECTED = Detection(20, 30, 60, 50, 1.0, "#ff0000", 0.1, 0.3, 0.3, 0.5)


async def test_drawn_regions_are_detected(bench: Bench) -> None:
    eye = await detector(bench, camera_name="cam")
    assert await eye.get_detections_from_camera("cam") == [EXPECTED]
    assert await eye.get_detections_from_camera() == [EXPECTED]
    assert await eye.get_detections_from_camera("rdk:component:camera/cam") == [EXPECTED]
    drawn = picture((100, 80), {(0, 0, 10, 10): RED, (50, 40, 90, 80): (255, 40, 0), (20, 20, 25, 25): RED})
    detections = await eye.get_detections(encoded(drawn), 100, 80, "image/png")
    assert [(item.x_min, item.y_min, item.x_max, item.y_max) for item in detections] == [
        (50, 40, 90, 80),
        (0, 0, 10, 10),
    ]
    assert await eye.get_detections(encoded(picture(boxes={(0, 0, 50, 50): GREEN})), 0, 0, "") == []
    assert await eye.get_status() == {"color": "#ff0000", "hue": 0.0}


async def test_a_label_can_be_given(bench: Bench) -> None:
    eye = await detector(bench, label="ball", detect_color="#0000FF")
    (item,) = await eye.get_detections_from_camera("cam")
    assert (item.class_name, item.x_min) == ("ball", 120)


async def test_errors_say_what_is_not_supported(bench: Bench) -> None:
    eye = await detector(bench, camera_name="cam")
    assert await eye.get_properties() == VisionProperties(detections_supported=True, default_camera="cam")
    for call in (
        eye.get_classifications(b""),
        eye.get_classifications_from_camera("cam"),
        eye.get_object_point_clouds("cam"),
        eye.get_detections_3d("cam"),
    ):
        with pytest.raises(Unsupported, match="request detections"):
            await call


async def test_all_of_one_image(bench: Bench) -> None:
    eye = await detector(bench)
    everything = await eye.capture_all_from_camera("cam", True, True, True, True, True)
    assert everything.image == DrawnCamera.images[0]
    assert everything.detections == [EXPECTED]
    assert (everything.classifications, everything.objects, everything.detections_3d) == ((), (), ())
    nothing = await eye.capture_all_from_camera("cam")
    assert (nothing.image, nothing.detections) == (None, ())


async def test_cameras_are_named_in_errors(bench: Bench) -> None:
    eye = await detector(bench)
    with pytest.raises(MachineError, match="no camera is selected") as caught:
        await eye.get_detections_from_camera()
    assert caught.value.kind is ErrorKind.INVALID
    with pytest.raises(MachineError, match="no camera 'cma'") as caught:
        await eye.get_detections_from_camera("cma")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert "cam" in caught.value.remedy
    with pytest.raises(MachineError, match="not a readable image"):
        await eye.get_detections(b"?")


async def test_depth_is_not_looked_at(bench: Bench) -> None:
    eye = await detector(bench)
    (camera,) = (resource for resource in bench.resources.values() if isinstance(resource, DrawnCamera))
    depth = Image(b"DEPTHMAP", "image/vnd.viam.dep", "depth")
    camera.images = [depth, *DrawnCamera.images]
    assert await eye.get_detections_from_camera("cam") == [EXPECTED]
    camera.images = [depth]
    with pytest.raises(MachineError, match="returned no color image"):
        await eye.get_detections_from_camera("cam")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"detect_color": "#777777"}, "shade of grey"),
        ({"detect_color": "blue"}, "write #RRGGBB"),
        ({"hue_tolerance_pct": 0}, "hue_tolerance_pct"),
        ({"hue_tolerance_pct": 1.1}, "hue_tolerance_pct"),
        ({"segment_size_px": 0}, "segment_size_px"),
        ({"value_cutoff_pct": 2}, "value_cutoff_pct"),
    ],
)
def test_attributes_that_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        decode_attributes(ColorDetectorConfig, {**RED_ONLY, **change}, path="attributes")


def test_it_waits_for_its_own_camera_alone() -> None:
    assert list(decode_attributes(ColorDetectorConfig, RED_ONLY, path="attributes")[0].uses()) == []
    named = {**RED_ONLY, "camera_name": "cam"}
    assert list(decode_attributes(ColorDetectorConfig, named, path="attributes")[0].uses()) == ["cam"]
