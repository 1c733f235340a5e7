"""The transform camera with a drawn source camera and real vision services."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.components.media.camera import Annotations, BoundingBox, Image, IntrinsicParameters
from engine.resource import Unsupported
from engine.services.mlmodel import Metadata, TensorInfo
from engine.services.vision import Detection, Vision
from models.vision.transform.attributes import TransformConfig
from models.vision.transform.overlay import COLORS, color_of
from runtime.server.memory import open_machine
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.vision.drawn import (
    BLUE,
    GREY,
    RED,
    WHEN,
    DrawnCamera,
    encoded,
    floats,
    model,
    opened,
    picture,
)


async def view(bench: Bench, *pipeline: dict[str, Any], depends_on: tuple[str, ...] = (), **attributes: Any) -> Any:
    source = await bench.add("camera", "cam", cls=DrawnCamera)
    result = await bench.add(
        "camera", "view", {"source": "cam", "pipeline": list(pipeline), **attributes}, model="transform"
    )
    return result, source


def entry(kind: str, **attributes: Any) -> dict[str, Any]:
    return {"type": kind, "attributes": attributes}


async def test_steps_are_made_in_order(bench: Bench) -> None:
    camera, _ = await view(
        bench, entry("crop", x_min_px=20, y_min_px=30, x_max_px=100, y_max_px=50), entry("rotate", angle_degs=90)
    )
    images = await camera.get_images()
    (image,) = images.images
    assert (image.mime_type, image.source_name, image.annotations) == ("image/png", "color", None)
    assert images.response_metadata.captured_at == WHEN
    result = opened(image.image)
    assert (result.size, result.getpixel((5, 75)), result.getpixel((5, 5))) == ((20, 80), RED, GREY)


async def test_an_empty_pipeline_hands_images_on_as_they_are(bench: Bench) -> None:
    camera, source = await view(bench)
    assert (await camera.get_images()).images == list(source.images)
    assert (await camera.get_properties()).mime_types == ("image/png", "image/vnd.viam.dep")


async def test_sources_are_chosen_and_depth_is_left_out(bench: Bench) -> None:
    camera, source = await view(bench, entry("identity"))
    source.images = [
        Image(encoded(picture()), "image/png", "left"),
        Image(encoded(picture(), "JPEG"), "image/jpeg", "right"),
        Image(b"DEPTHMAP", "image/vnd.viam.dep", "depth"),
    ]
    messages = [(image.source_name, image.mime_type) for image in (await camera.get_images()).images]
    assert messages == [("left", "image/png"), ("right", "image/jpeg")]
    assert [item.source_name for item in (await camera.get_images(["right"])).images] == ["right"]
    with pytest.raises(Unsupported, match="only depth maps"):
        await camera.get_images(["depth"])


async def test_a_crop_outside_the_picture_is_an_error_of_the_pipeline(bench: Bench) -> None:
    camera, _ = await view(bench, entry("crop", x_min_px=900, y_min_px=0, x_max_px=990, y_max_px=50))
    with pytest.raises(MachineError, match="200 x 100 pixels") as caught:
        await camera.get_images()
    assert caught.value.kind is ErrorKind.PRECONDITION


async def test_annotations_of_an_image_are_kept(bench: Bench) -> None:
    camera, source = await view(bench, entry("crop", x_min_px=0, y_min_px=0, x_max_px=0.5, y_max_px=1))
    present = Annotations((BoundingBox("1", "thing", 0.0, 0.0, 0.25, 0.5, 0.5),))
    source.images = [replace(DrawnCamera.images[0], annotations=present)]
    (image,) = (await camera.get_images()).images
    assert image.annotations == Annotations((BoundingBox("1", "thing", 0.0, 0.0, 0.5, 0.5, 0.5),))


RED_DETECTOR = {"detect_color": "#ff0000", "hue_tolerance_pct": 0.05, "segment_size_px": 50, "label": "ball"}


async def test_detections_are_drawn_and_returned(bench: Bench) -> None:
    await bench.add("rdk:service:vision", "eye", RED_DETECTOR, model="color_detector")
    camera, _ = await view(
        bench, entry("resize", width_px=400, height_px=200), entry("detections", detector_name="eye")
    )
    (image,) = (await camera.get_images()).images
    assert image.annotations is not None
    (box,) = image.annotations.bboxes
    assert (box.label, box.confidence) == ("ball", 1.0)
    edges = (box.x_min_normalized, box.y_min_normalized, box.x_max_normalized, box.y_max_normalized)
    assert edges == pytest.approx((0.1, 0.3, 0.3, 0.5), abs=0.015)
    result = opened(image.image)
    assert result.getpixel((round(box.x_max_normalized * 400) - 1, 95)) == color_of("ball")
    assert result.getpixel((100, 90)) == RED


class TellsFractions(Vision):
    """A vision service that reports only normalized coordinates."""

    async def get_detections(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", *, extra: Any = None
    ) -> list[Detection]:
        assert (width, height, mime_type) == (200, 100, "image/jpeg")
        return [
            Detection(
                confidence=0.5,
                class_name="half",
                x_min_normalized=0.25,
                y_min_normalized=0.5,
                x_max_normalized=0.75,
                y_max_normalized=1.0,
            )
        ]


async def test_boxes_in_fractions_are_drawn_too(bench: Bench) -> None:
    await bench.add("rdk:service:vision", "eye", cls=TellsFractions)
    camera, _ = await view(bench, entry("detections", detector_name="eye"))
    (image,) = (await camera.get_images()).images
    assert image.annotations == Annotations((BoundingBox("", "half", 0.25, 0.5, 0.75, 1.0, 0.5),))
    result = opened(image.image)
    assert result.getpixel((149, 80)) == color_of("half")
    assert result.getpixel((100, 80)) == GREY


@pytest.mark.parametrize(
    ("attributes", "count"),
    [({}, 2), ({"confidence_threshold": 0.6}, 1), ({"valid_labels": ["dog"]}, 1), ({"valid_labels": ["cow"]}, 0)],
)
async def test_only_wanted_detections_are_drawn(bench: Bench, attributes: dict[str, Any], count: int) -> None:
    names = {"names": ["cat", "dog"]}
    metadata = Metadata(
        "",
        "",
        "",
        [TensorInfo("image", "", "uint8", [1, 8, 8, 3])],
        [
            TensorInfo("location", "", "", (), (), names),
            TensorInfo("category"),
            TensorInfo("score"),
        ],
    )
    answers = {
        "location": floats([2, 4], 0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.9, 0.9),
        "category": floats([2], 0, 1),
        "score": floats([2], 0.5, 0.75),
    }
    await bench.add("rdk:service:mlmodel", "m", cls=model(metadata, answers))
    await bench.add("rdk:service:vision", "eye", {"mlmodel_name": "m"}, model="mlmodel")
    camera, _ = await view(bench, entry("detections", detector_name="eye", **attributes))
    (image,) = (await camera.get_images()).images
    assert len(image.annotations.bboxes if image.annotations else ()) == count


async def test_classifications_are_drawn_and_returned(bench: Bench) -> None:
    info = TensorInfo("probability", "", "", (), (), {"names": ["cat", "dog", "cow"]})
    metadata = Metadata("", "", "", [TensorInfo("image", "", "uint8", [1, 8, 8, 3])], [info])
    await bench.add("rdk:service:mlmodel", "m", cls=model(metadata, {"probability": floats([3], 0.2, 0.5, 0.3)}))
    await bench.add("rdk:service:vision", "eye", {"mlmodel_name": "m"}, model="mlmodel")
    camera, _ = await view(bench, entry("classifications", classifier_name="eye", max_classifications=2))
    (image,) = (await camera.get_images()).images
    assert image.annotations is not None
    assert [
        (classification.label, classification.confidence) for classification in image.annotations.classifications
    ] == [
        ("dog", 0.5),
        ("cow", pytest.approx(0.3)),
    ]
    result = opened(image.image)
    assert result.getpixel((0, 0)) == color_of("dog")
    assert result.getpixel((150, 15)) == picture().getpixel((150, 15))


async def test_properties_are_those_of_the_source_moved(bench: Bench) -> None:
    camera, _ = await view(bench, entry("crop", x_min_px=50, y_min_px=20, x_max_px=150, y_max_px=80))
    properties = await camera.get_properties()
    assert properties.intrinsic_parameters == IntrinsicParameters(100, 60, 150.0, 160.0, 40.0, 20.0)
    assert properties.distortion_parameters.parameters == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert (properties.supports_pcd, properties.mime_types, properties.frame_rate) == (False, ("image/png",), 12.5)
    with pytest.raises(Unsupported, match="request it from rdk:component:camera/cam"):
        await camera.get_point_cloud()


async def test_properties_can_be_configured_and_a_turn_takes_the_distortion(bench: Bench) -> None:
    lens = {"width_px": 1, "height_px": 2, "fx": 3, "fy": 4, "ppx": 5, "ppy": 6}
    camera, _ = await view(bench, entry("rotate"), intrinsic_parameters=lens)
    properties = await camera.get_properties()
    assert properties.intrinsic_parameters == IntrinsicParameters(1, 2, 3, 4, 5, 6)
    assert properties.distortion_parameters is None
    other = await bench.add(
        "camera",
        "v2",
        {"source": "cam", "pipeline": [entry("rotate")], "distortion_parameters": {"rk1": 9}},
        model="transform",
    )
    assert (await other.get_properties()).distortion_parameters.parameters == (9, 0, 0, 0, 0)


def test_required_attributes() -> None:
    pipeline = [
        entry("detections", detector_name="a"),
        entry("identity"),
        entry("classifications", classifier_name="b"),
    ]
    config, _ = decode_attributes(TransformConfig, {"source": "cam", "pipeline": pipeline}, path="attributes")
    assert list(config.requires()) == ["cam", "a", "b"]


def test_a_wrong_entry_is_named() -> None:
    pipeline = [entry("identity"), entry("overlay")]
    with pytest.raises(ConfigError, match=r"pipeline.1: 'overlay' is not a step"):
        decode_attributes(TransformConfig, {"source": "cam", "pipeline": pipeline}, path="attributes")


def test_colors_of_labels_never_change() -> None:
    assert [COLORS.index(color_of(label)) for label in ("cat", "dog", "person")] == [0, 5, 6]
    assert BLUE not in COLORS


async def test_a_service_does_not_look_through_the_camera_that_shows_its_own_detections(tmp_path: Any) -> None:
    """The service may use every camera and the camera requires the service; this cycle must not block their start."""
    path = tmp_path / "image.png"
    path.write_bytes(DrawnCamera.images[0].image)
    document = {
        "components": [
            {
                "api": "rdk:component:camera",
                "name": "cam",
                "model": "image_file",
                "attributes": {"color_path": str(path)},
            },
            {
                "api": "rdk:component:camera",
                "name": "view",
                "model": "transform",
                "attributes": {"source": "cam", "pipeline": [entry("detections", detector_name="eye")]},
            },
        ],
        "services": [
            {"api": "rdk:service:vision", "name": "eye", "model": "color_detector", "attributes": RED_DETECTOR}
        ],
    }
    async with open_machine(document) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        vision, camera = "rdk:service:vision", "rdk:component:camera"
        assert len(await client.call(vision, "eye", "get_detections_from_camera", camera_name="cam")) == 1
        images = await client.call(camera, "view", "get_images")
        assert images["images"][0]["annotations"]["bboxes"][0]["label"] == "ball"
        # The service also accepts a camera that requires the service for its own images.
        assert len(await client.call(vision, "eye", "get_detections_from_camera", camera_name="view")) == 1
