"""Cameras in the guest: the kernel's vivid and uvcvideo, machine-server, the official SDK."""

from __future__ import annotations

import io
import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from PIL import Image
from viam.components.camera import Camera

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.rig.record import Recorder
from tests.hil.test_serial import component, first_good, found, machine, refusal

DRIVER = "/sys/bus/platform/drivers/vivid"
# One webcam, without the loud timer overlay; pattern 0 is 75 % colour bars.
LOAD = (
    "modprobe -r vivid 2>/dev/null; modprobe vivid n_devs=1 node_types=0x1 num_inputs=1 input_types=0x0 no_error_inj=0"
)


@pytest.fixture
async def node(guest: Guest) -> AsyncIterator[str]:
    """Yield the camera's device."""
    await guest.run(LOAD)
    await guest.run("udevadm settle")
    found = (await guest.run("ls /dev/video* | head -1")).stdout.strip()
    await guest.run(f"v4l2-ctl -d {found} --set-ctrl=osd_text_mode=2,test_pattern=0")
    yield found
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 30):
        await guest.run("modprobe -r vivid", check=False)


async def image_of(sdk: Any, name: str) -> tuple[Image.Image, Any]:
    images, metadata = await sdk((await found(sdk, Camera, name)).get_images())
    (named,) = images
    picture = Image.open(io.BytesIO(named.data))
    picture.load()
    return picture.convert("RGB"), metadata


BARS = [(191, 191, 191), (191, 191, 0), (0, 191, 191), (0, 191, 0), (191, 0, 191), (191, 0, 0), (0, 0, 191)]


def check_bars(picture: Image.Image) -> None:
    """Check for 75 % color bars: white, yellow, cyan, green, magenta, red, blue (and black)."""
    width, height = picture.size
    for index, wanted in enumerate(BARS):
        found = picture.getpixel((round((index + 0.5) * width / 8), height // 2))
        assert isinstance(found, tuple)
        assert all(abs(a - b) < 40 for a, b in zip(found, wanted, strict=True)), (index, found, wanted)


async def test_frames_arrive_in_every_format(guest: Guest, node: str) -> None:
    """Change the configuration for each format: the camera is closed and opened each time."""

    def wanted(pixels: str) -> dict[str, Any]:
        attributes = {"video_path": node, "format": pixels, "width_px": 320, "height_px": 180}
        return component("cam", "camera", "webcam", **attributes)

    async with machine(guest, wanted("yuyv")) as (server, sdk):
        for pixels in ("yuyv", "nv12", "rgb24", "bgr24", "grey"):
            await server.write({"components": [wanted(pixels)]})

            async def mode(pixels: str = pixels) -> None:
                status = await sdk((await found(sdk, Camera, "cam")).get_status())
                assert status["mode"].split()[:2] == [pixels, "320x180"]

            await first_good(mode)
            picture, metadata = await first_good(lambda: image_of(sdk, "cam"))
            assert picture.size == (320, 180)
            if pixels != "grey":
                check_bars(picture)
            taken = metadata.captured_at.ToDatetime(tzinfo=UTC)
            assert abs((datetime.now(UTC) - taken).total_seconds()) < 30


async def test_the_first_camera_by_name_and_unsupported_settings(guest: Guest, node: str) -> None:
    entries = (
        component("wrong_size", "camera", "webcam", video_path=node, width_px=641, height_px=360),
        component("wrong_rate", "camera", "webcam", video_path=node, width_px=640, height_px=360, frame_rate=41),
        component("wrong_format", "camera", "webcam", video_path=node, format="mjpeg"),
        component("elsewhere", "camera", "webcam", video_path="/dev/v4l/by-id/none"),
    )
    async with machine(guest, *entries) as (server, _):
        await server.wait_log("has no size 641x360: use 640x360")
        await server.wait_log("has no 41 frames/s in .*: use ")
        await server.wait_log("has no format mjpeg: use .*yuyv")
        await server.wait_log(f"by-id/none: No such file or directory; there are {node}")
    async with machine(guest, component("cam", "camera", "webcam")) as (server, sdk):
        await image_of(sdk, "cam")
        status = await sdk(Camera.from_robot(sdk.robot, "cam").get_status())
        assert status["mode"].split()[1] == "640x480"
        print(f"first camera: {status}")


async def test_a_camera_is_unplugged_and_reconnected(guest: Guest, node: str, record_recovery: Recorder) -> None:
    async with machine(guest, component("cam", "camera", "webcam", width_px=320, height_px=180)) as (_, sdk):
        await image_of(sdk, "cam")
        start = time.monotonic()
        await guest.run(f"echo vivid.0 > {DRIVER}/unbind")
        seen = await refusal(lambda: image_of(sdk, "cam"), "")
        assert "internal error" not in seen
        print(f"unhealthy {time.monotonic() - start:.2f} s after the camera was unplugged")
        start = time.monotonic()
        await guest.run(f"echo vivid.0 > {DRIVER}/bind")
        await first_good(lambda: image_of(sdk, "cam"))
        record_recovery("camera unplugged and back", time.monotonic() - start, seen=seen)


async def test_a_camera_in_use_and_one_without_permission(guest: Guest, node: str, record_recovery: Recorder) -> None:
    other = await guest.start(f"v4l2-ctl -d {node} --stream-mmap --stream-count=100000")
    await other.wait_output("<")
    async with machine(guest, component("cam", "camera", "webcam", video_path=node)) as (server, sdk):
        await server.wait_log("is already used: end the program")
        await refusal(lambda: image_of(sdk, "cam"), "")
        start = time.monotonic()
        await other.stop()
        await first_good(lambda: image_of(sdk, "cam"))
        record_recovery(
            "camera used by another program, then free",
            time.monotonic() - start,
            seen="is already used: end the program",
        )
    async with machine(guest, component("cam", "camera", "webcam", video_path=node), user="hil") as (server, _):
        await server.wait_log("Permission denied: add the user to group video")


async def test_unused_frames_cost_little(guest: Guest, node: str) -> None:
    async with machine(guest, component("cam", "camera", "webcam", width_px=640, height_px=360)) as (server, sdk):
        await image_of(sdk, "cam")
        found_pid = re.search(r'"pid":(\d+)', server.log)
        assert found_pid is not None

        async def used() -> float:
            fields = (await guest.run(f"cat /proc/{found_pid[1]}/stat")).stdout.split()
            return (int(fields[13]) + int(fields[14])) / 100

        before, status = await used(), await sdk(Camera.from_robot(sdk.robot, "cam").get_status())
        await trio.sleep(5)
        after, later = await used(), await sdk(Camera.from_robot(sdk.robot, "cam").get_status())
        frames = later["frames"] - status["frames"]
        print(f"{(after - before) / frames * 1e3:.2f} ms of the guest's processor for each of {frames:.0f} frames")
        assert frames > 5


# ---- a USB webcam, for uvcvideo: motion JPEG as webcams send it, without Huffman tables

BY_ID = "/dev/v4l/by-id/usb-Rig_Webcam_CAM0001-video-index0"


def motion_jpeg(left: tuple[int, int, int], right: tuple[int, int, int]) -> bytes:
    image = Image.new("RGB", (640, 480), left)
    image.paste(right, (320, 0, 640, 480))
    buffer = io.BytesIO()
    image.save(buffer, "jpeg", quality=90)
    data = buffer.getvalue()
    out, at = data[:2], 2
    while data[at : at + 2] != b"\xff\xda":
        length = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        out += data[at : at + length] if data[at : at + 2] != b"\xff\xc4" else b""
        at += length
    return out + data[at:]


RED_BLUE = motion_jpeg((255, 0, 0), (0, 0, 255))
GREEN_RED = motion_jpeg((0, 255, 0), (255, 0, 0))


def halves(picture: Image.Image) -> list[str]:
    """Return the strongest color in each half."""
    found = [picture.getpixel((x, 240)) for x in (160, 480)]
    return ["rgb"[max(range(3), key=lambda i: colour[i])] for colour in found if isinstance(colour, tuple)]


async def test_a_usb_webcam_by_its_stable_path(guest: Guest, plant: Plant, record_recovery: Recorder) -> None:
    await guest.run("modprobe uvcvideo")
    camera = await plant.make("tests.hil.guest.webcam:Webcam", RED_BLUE)
    await camera.call("plug")
    await guest.run("udevadm settle")
    print((await guest.run("v4l2-ctl --list-devices; ls /dev/v4l/by-id; dmesg | tail -3", check=False)).output)
    entries = (
        component("cam", "camera", "webcam", video_path=BY_ID, frame_rate=15),
        component("meta", "camera", "webcam", video_path=BY_ID.replace("index0", "index1")),
    )
    async with machine(guest, *entries) as (server, sdk):
        await server.wait_log("delivers no frames: a camera often has a second device")

        async def sees(wanted: list[str]) -> None:
            picture, _ = await image_of(sdk, "cam")
            assert picture.size == (640, 480)
            assert halves(picture) == wanted

        await first_good(lambda: sees(["r", "b"]))
        properties = await sdk(Camera.from_robot(sdk.robot, "cam").get_properties())
        assert properties.frame_rate == pytest.approx(15, abs=0.1)
        await camera.set(frame=GREEN_RED)
        await first_good(lambda: sees(["g", "r"]))

        start = time.monotonic()
        await camera.call("unplug")
        seen = await refusal(lambda: image_of(sdk, "cam"), "")
        print(f"unhealthy {time.monotonic() - start:.2f} s after the webcam was unplugged")
        await camera.call("plug", "CAM0002")  # another camera of the same model
        await guest.run("udevadm settle")
        await server.wait_log("CAM0001-video-index0: No such file or directory; there are [^\n]*CAM0002")
        await refusal(lambda: image_of(sdk, "cam"), "")
        await camera.call("unplug")
        start = time.monotonic()
        await camera.call("plug", "CAM0001")
        await first_good(lambda: sees(["g", "r"]))
        record_recovery("USB webcam unplugged, swapped for another, and back", time.monotonic() - start, seen=seen)

        await camera.set(frozen=True)
        await server.wait_log("has delivered no frame for 5 s")
        await refusal(lambda: image_of(sdk, "cam"), "")
        start = time.monotonic()
        await camera.set(frozen=False)
        await first_good(lambda: sees(["g", "r"]))
        record_recovery(
            "webcam that hangs, then delivers", time.monotonic() - start, seen="has delivered no frame for 5 s"
        )
