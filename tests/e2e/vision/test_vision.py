"""Vision, ML models, the transform camera and the frame system through the unmodified official Python SDK."""

from __future__ import annotations

import asyncio
import io
import stat
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError, Status
from PIL import Image
from viam.components.arm import Arm
from viam.components.camera import Camera
from viam.components.gantry import Gantry
from viam.media.video import CameraMimeType, ViamImage
from viam.proto.common import Pose, PoseInFrame, Transform
from viam.proto.component.arm import JointPositions
from viam.proto.service.motion import GetPoseRequest, MotionServiceStub
from viam.robot.client import RobotClient
from viam.services.vision import VisionClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play, refused
from tests.unit.models.vision import onnx_file
from tests.unit.models.vision.drawn import BLUE, GREEN, RED, encoded, picture

ML = all(find_spec(name) is not None for name in ("numpy", "onnxruntime"))
needs_ml = pytest.mark.skipif(not ML, reason="the extra ml (onnxruntime, numpy) is not installed")

REDS = {"detect_color": "#ff0000", "hue_tolerance_pct": 0.05, "segment_size_px": 50}
MODULE = Path(__file__).parent / "model_module.py"


def service(api: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"api": f"rdk:service:{api}", "name": name, "model": model, "attributes": attributes}


def component(
    api: str, name: str, model: str, frame: dict[str, Any] | None = None, **attributes: Any
) -> dict[str, Any]:
    entry: dict[str, Any] = {"api": f"rdk:component:{api}", "name": name, "model": model, "attributes": attributes}
    return entry if frame is None else {**entry, "frame": frame}


def models(folder: Path) -> list[dict[str, Any]]:
    """Return ML model services on ONNX Runtime and in a module."""
    labels = str(folder / "labels.txt")
    return [
        service("mlmodel", "colors", "onnx", model_path=str(folder / "colors.onnx"), label_path=labels),
        service("mlmodel", "boxes", "onnx", model_path=str(folder / "boxes.onnx"), label_path=labels),
        service("mlmodel", "brightest", "acme:demo:brightest"),
        service("vision", "classifier", "mlmodel", mlmodel_name="colors", camera_name="scene"),
        service("vision", "detector", "mlmodel", mlmodel_name="boxes"),
        service("vision", "rows", "mlmodel", mlmodel_name="brightest"),
        service("vision", "broken", "mlmodel", mlmodel_name="colors", output_layout="boxes"),
    ]


def document(folder: Path) -> dict[str, Any]:
    drawn = picture((200, 100), {(20, 30, 60, 50): RED, (120, 10, 130, 20): BLUE, (0, 80, 200, 90): (255, 255, 255)})
    (folder / "scene.png").write_bytes(encoded(drawn))
    (folder / "colors.onnx").write_bytes(onnx_file.classifier({"Image.NominalPixelRange": "Normalized_0_1"}))
    (folder / "boxes.onnx").write_bytes(onnx_file.detector())
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    program = folder / "module"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {MODULE} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "modules": [{"name": "demo", "executable_path": str(program)}] if ML else [],
        "components": [
            component("camera", "scene", "image_file", color_path=str(folder / "scene.png")),
            component(
                "camera",
                "view",
                "transform",
                source="scene",
                pipeline=[
                    {"type": "detections", "attributes": {"detector_name": "reds"}},
                    {"type": "rotate", "attributes": {"angle_degs": 90}},
                    {"type": "resize", "attributes": {"width_px": 50, "height_px": 100}},
                ],
            ),
            component("gantry", "gantry", "fake", {"parent": "world", "translation": {"z": 100}}),
            component("arm", "arm", "fake", {"parent": "gantry"}),
            component("camera", "hand", "fake", {"parent": "arm", "translation": {"z": 50}}, width_px=64, height_px=48),
        ],
        "services": [service("vision", "reds", "color_detector", **REDS), *(models(folder) if ML else ())],
    }


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a machine with cameras, models, vision services and parts that move; yield its address."""
    folder = tmp_path_factory.mktemp("seeing")
    with Server(document(folder), folder) as server:
        yield server.wait_running().address


async def there(robot: RobotClient, name: str) -> VisionClient:
    """Return the service once it exists: that of the module starts later."""
    while True:
        await robot.refresh()
        if any(item.name == name for item in robot.resource_names):
            return VisionClient.from_robot(robot, name)
        await asyncio.sleep(0.05)  # the published API has no event for it; bounded by play


def test_color_detector(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        reds = VisionClient.from_robot(robot, "reds")
        (item,) = await reds.get_detections_from_camera("scene")
        assert (item.x_min, item.y_min, item.x_max, item.y_max) == (20, 30, 60, 50)
        assert (item.confidence, item.class_name) == (1.0, "#ff0000")
        assert (item.x_min_normalized, item.y_max_normalized) == pytest.approx((0.1, 0.5))
        image = ViamImage(encoded(picture(boxes={(5, 6, 50, 60): RED})), CameraMimeType.PNG)
        (item,) = await reds.get_detections(image)
        assert (item.x_min, item.y_min, item.x_max, item.y_max) == (5, 6, 50, 60)
        properties = await reds.get_properties()
        assert (properties.detections_supported, properties.classifications_supported) == (True, False)
        await refused(Status.UNIMPLEMENTED, reds.get_classifications_from_camera("scene", 1))
        error = await refused(Status.UNIMPLEMENTED, reds.get_object_point_clouds("scene"))
        assert "does not process point clouds" in str(error.message)
        await refused(Status.NOT_FOUND, reds.get_detections_from_camera("scnee"))
        cut_off = ViamImage(encoded(picture())[:100], CameraMimeType.PNG)
        await refused(Status.INVALID_ARGUMENT, reds.get_detections(cut_off))
        everything = await reds.capture_all_from_camera("scene", return_image=True, return_detections=True)
        assert everything.image is not None
        assert Image.open(io.BytesIO(everything.image.data)).size == (200, 100)
        assert len(everything.detections or ()) == 1

    play(seeing, script)


@needs_ml
def test_classifier_and_detector_on_onnx(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        classifier = VisionClient.from_robot(robot, "classifier")
        for color, label in ((RED, "red"), (GREEN, "green"), (BLUE, "blue")):
            image = ViamImage(encoded(picture((40, 40), {(5, 5, 35, 35): color}), "JPEG"), CameraMimeType.JPEG)
            (classification,) = await classifier.get_classifications(image, 1)
            assert (classification.class_name, 0.3 < classification.confidence <= 1) == (label, True)
        assert (await classifier.get_properties()).default_camera == "scene"
        assert len(await classifier.get_classifications_from_camera("scene", 3)) == 3
        detections = await VisionClient.from_robot(robot, "detector").get_detections_from_camera("scene")
        assert [
            (detection.class_name, detection.x_min, detection.y_min, detection.x_max, detection.y_max)
            for detection in detections
        ] == [
            ("red", 100, 50, 200, 100),
            ("green", 20, 20, 60, 40),
        ]

    play(seeing, script)


@needs_ml
def test_ml_model_client(seeing: str) -> None:
    import numpy
    from viam.services.mlmodel import MLModelClient

    async def script(robot: RobotClient) -> None:
        model = MLModelClient.from_robot(robot, "colors")
        result = await model.metadata()
        assert (result.name, result.type) == ("drawn", "onnx")
        (image,) = result.input_info
        assert (image.name, image.data_type, list(image.shape)) == ("image", "float32", [1, 3, 8, 8])
        assert list(image.extra["std_dev"]) == [255.0] * 3  # type: ignore[arg-type]
        assert result.output_info[0].associated_files[0].name.endswith("labels.txt")
        passed = numpy.arange(192, dtype=numpy.float32).reshape(1, 3, 8, 8)
        answer = await model.infer({"image": passed})
        assert answer["logits"].tolist() == [[31.5, 95.5, 159.5]]
        error = await refused(Status.INVALID_ARGUMENT, model.infer({"image": passed.astype(numpy.int16)}))
        assert "use float32" in str(error.message)

    play(seeing, script)


@needs_ml
def test_a_model_of_a_module(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        (item,) = await (await there(robot, "rows")).get_detections_from_camera("scene")
        assert (item.x_min, item.y_min, item.x_max, item.y_max) == (0, 80, 200, 90)
        assert (item.confidence, item.class_name) == (0.75, "1")

    play(seeing, script)


@needs_ml
def test_a_service_that_cannot_use_its_model_explains_why(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        status = await robot.get_machine_status()
        (broken,) = [resource for resource in status.resources if resource.name.name == "broken"]
        assert "logits [1, 3]" in broken.error
        assert "remap_output_names" in broken.error

    play(seeing, script)


def test_transform_camera(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        camera = Camera.from_robot(robot, "view")
        images, metadata = await camera.get_images()
        (image,) = images
        result = Image.open(io.BytesIO(image.data))
        assert (image.mime_type, image.name, result.size) == (CameraMimeType.PNG, "color", (50, 100))
        assert metadata.captured_at.seconds > 0
        properties = await camera.get_properties()
        assert list(properties.mime_types) == ["image/png"]
        await refused(Status.UNIMPLEMENTED, camera.get_point_cloud())

    play(seeing, script)


def test_poses_relative_to_moving_frames(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        await Gantry.from_robot(robot, "gantry").move_to_position([10, 20, 30], [1000, 1000, 1000])
        arm = Arm.from_robot(robot, "arm")
        await arm.move_to_joint_positions(JointPositions(values=[90, 0, 90, 0, 0, 0]))
        end = await arm.get_end_position()
        assert (end.x, end.y, end.z) == pytest.approx((0, 440, 550), abs=1e-6)
        seen = await robot.get_pose("arm")
        assert seen.reference_frame == "world"
        assert (seen.pose.x, seen.pose.y, seen.pose.z) == pytest.approx((10, 460, 680))
        cup = Transform(
            reference_frame="cup",
            pose_in_observer_frame=PoseInFrame(reference_frame="hand", pose=Pose(z=10, o_z=1)),
        )
        seen = await robot.get_pose("cup", "gantry", [cup])
        assert (seen.pose.x, seen.pose.y, seen.pose.z) == pytest.approx((0, 500, 550))
        there_and = await robot.transform_pose(PoseInFrame(reference_frame="hand", pose=Pose(x=1, y=2, z=3)), "world")
        back = await robot.transform_pose(there_and, "hand")
        assert (back.pose.x, back.pose.y, back.pose.z) == pytest.approx((1, 2, 3))
        parts = {part.frame.reference_frame: part for part in await robot.get_frame_system_config()}
        assert list(parts) == ["gantry", "arm", "hand"]
        assert "links" in parts["arm"].kinematics.fields
        with pytest.raises(GRPCError) as caught:
            await robot.get_pose("scene")
        assert caught.value.status is Status.NOT_FOUND
        assert "configure a frame for scene" in str(caught.value.message)

    play(seeing, script)


def test_point_clouds_in_another_frame(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        cloud, _ = await Camera.from_robot(robot, "hand").get_point_cloud()
        moved = await robot.transform_pcd(cloud, "hand", "world")
        assert len(moved) == len(cloud)
        assert await robot.transform_pcd(cloud, "hand", "hand") != b""
        await refused(Status.INVALID_ARGUMENT, robot.transform_pcd(b"no cloud", "hand", "world"))

    play(seeing, script)


def test_the_motion_service_says_the_same(seeing: str) -> None:
    async def script(robot: RobotClient) -> None:
        stub = MotionServiceStub(robot._channel)
        request = GetPoseRequest(name="builtin", component_name="hand", destination_frame="world")
        assert (await stub.GetPose(request)).pose == await robot.get_pose("hand", "world")
        await refused(Status.INVALID_ARGUMENT, stub.GetPose(GetPoseRequest(name="builtin")))

    play(seeing, script)
