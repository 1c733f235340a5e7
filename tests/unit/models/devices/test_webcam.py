"""Camera `webcam` on simulated hardware, in virtual time."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
import trio
from PIL import Image
from trio.testing import wait_all_tasks_blocked

from engine.resource import Unsupported
from hal.errors import Fault, HalError
from hal.ports.video import VideoSettings
from models.devices.webcam.attributes import WebcamConfig
from models.devices.webcam.model import STALL_LIMIT
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench


async def test_the_newest_frame_is_the_image(bench: Bench, autojump_clock: object) -> None:
    camera = await bench.add("camera", "it", {"width_px": 320, "height_px": 240, "frame_rate": 10}, model="webcam")
    images = await camera.get_images()
    (image,) = images.images
    assert (image.mime_type, image.source_name) == ("image/jpeg", "color")
    assert Image.open(io.BytesIO(image.image)).size == (320, 240)
    assert abs(images.response_metadata.captured_at - datetime.now(UTC)) < timedelta(seconds=60)
    assert (await camera.get_properties()).frame_rate == 10
    await trio.sleep(1)
    assert (await camera.get_status())["frames"] in (10, 11, 12)
    assert (await camera.get_images(["color"])).images[0].source_name == "color"
    with pytest.raises(MachineError, match="no source 'depth'") as caught:
        await camera.get_images(["depth"])
    assert caught.value.kind is ErrorKind.INVALID
    with pytest.raises(Unsupported):
        await camera.get_point_cloud()


async def failing(bench: Bench, attributes: dict[str, object], break_it: object) -> HalError:
    """Start a camera, run `break_it`, and return the error of the camera."""

    async def live() -> None:
        async with trio.open_nursery() as nursery:
            inner = Bench(nursery)
            inner.hardware = bench.hardware
            await inner.add("camera", "it", attributes, model="webcam")
            break_it()  # type: ignore[operator]

    with pytest.raises(BaseExceptionGroup) as caught:
        await live()
    (error,) = caught.value.exceptions
    assert isinstance(error, HalError)
    return error


async def test_an_unplugged_camera_ends_and_a_new_start_finds_it_again(bench: Bench, autojump_clock: object) -> None:
    device = bench.hardware.camera("it")
    error = await failing(bench, {"video_path": "it"}, device.unplug)
    assert error.fault is Fault.GONE
    device.plug()
    camera = await bench.add("camera", "it", {"video_path": "it"}, model="webcam")
    assert (await camera.get_images()).images


async def test_a_camera_that_hangs_is_a_failure(bench: Bench, autojump_clock: object) -> None:
    device = bench.hardware.camera("it")
    start = trio.current_time()
    error = await failing(bench, {"video_path": "it"}, lambda: setattr(device, "stalled", True))
    assert error.fault is Fault.TIMEOUT
    assert STALL_LIMIT <= trio.current_time() - start < STALL_LIMIT + 1
    device.stalled = False


async def test_it_is_ready_only_when_a_frame_has_arrived(bench: Bench, autojump_clock: object) -> None:
    device = bench.hardware.camera("it")
    device.stalled = True
    ready = trio.Event()

    async def add() -> None:
        await bench.add("camera", "it", {"video_path": "it"}, model="webcam")
        ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        await wait_all_tasks_blocked()
        await trio.sleep(3)
        assert not ready.is_set()
        nursery.cancel_scope.cancel()


async def test_errors_name_unsupported_settings(bench: Bench, autojump_clock: object) -> None:
    with pytest.raises(HalError, match=r"no size 5000xany.*use 4096x480") as caught:
        async with bench.hardware.video("", VideoSettings(width=5000)):
            raise AssertionError
    assert caught.value.fault is Fault.UNSUPPORTED
    with pytest.raises(HalError, match=r"no format yuyv.*use mjpeg"):
        async with bench.hardware.video("", VideoSettings(format="yuyv")):
            raise AssertionError
    with pytest.raises(HalError, match=r"no 200 frames/s.*use 1 to 60"):
        async with bench.hardware.video("", VideoSettings(rate=200)):
            raise AssertionError


async def test_parameters_are_reported_as_configured(bench: Bench, autojump_clock: object) -> None:
    lens = {"width_px": 640, "height_px": 480, "fx": 600, "fy": 601, "ppx": 320, "ppy": 240}
    attributes = {"intrinsic_parameters": lens, "distortion_parameters": {"rk1": 0.1, "tp2": 0.2}}
    properties = await (await bench.add("camera", "it", attributes, model="webcam")).get_properties()
    assert properties.intrinsic_parameters.focal_y_px == 601
    assert properties.distortion_parameters.parameters == (0.1, 0, 0, 0, 0.2)
    assert not properties.supports_pcd


def test_formats_have_other_names_too() -> None:
    assert WebcamConfig(format="MJPG").settings().format == "mjpeg"
    assert WebcamConfig(format="YUYV", frame_rate=7.5).settings() == VideoSettings("yuyv", 0, 0, 7.5)
    with pytest.raises(ValueError, match="'h264' is not mjpeg"):
        WebcamConfig(format="h264")
