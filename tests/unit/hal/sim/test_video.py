"""Cameras: choice of modes, conversion to JPEG, kernel structures, and a device with a fake kernel."""

from __future__ import annotations

import ctypes
import errno
import io
import mmap
import socket
import struct
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hal.errors import Fault, HalError
from hal.linux.video import v4l2
from hal.linux.video.camera import LinuxVideo, find_camera
from hal.linux.video.device import CaptureDevice
from hal.pixels import HUFFMAN_TABLES, RawFrame, complete_jpeg, to_jpeg
from hal.ports.video import PixelFormat, VideoMode, VideoSettings
from hal.video_modes import TOLERANCE, Rates, Sizes, choose_rate, choose_size
from hal.worker import BusWorker

# ---- modes

OFFERS: dict[PixelFormat, tuple[Sizes, ...]] = {
    "yuyv": (Sizes(640, 480), Sizes(1920, 1080)),
    "mjpeg": (Sizes(1280, 720), Sizes(1920, 1080), Sizes(320, 240)),
    "grey": (Sizes(16, 16, 1024, 768, 16, 8),),
}


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        (VideoSettings(), ("mjpeg", 320, 240)),
        (VideoSettings("yuyv"), ("yuyv", 640, 480)),
        (VideoSettings(width=640, height=480), ("yuyv", 640, 480)),
        (VideoSettings(width=1920), ("mjpeg", 1920, 1080)),
        (VideoSettings(height=720), ("mjpeg", 1280, 720)),
        (VideoSettings("grey", 800, 600), ("grey", 800, 600)),
        (VideoSettings(width=800, height=600), ("grey", 800, 600)),
    ],
)
def test_a_mode_is_chosen(expected: VideoSettings, result: tuple[str, int, int]) -> None:
    assert choose_size(OFFERS, expected, "it") == result


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (VideoSettings("nv12"), "it has no format nv12: use grey or mjpeg or yuyv"),
        (VideoSettings("mjpeg", 1000, 700), "no size 1000x700 in mjpeg: use 1280x720 or 320x240 or 1920x1080"),
        (VideoSettings("grey", 801, 600), "no size 801x600 in grey: use 800x600"),
        (VideoSettings(width=5000), "no size 5000xany: use 1920x1080 or 1280x720 or 1024x480 or"),
    ],
)
def test_unsupported_settings_are_refused_with_the_nearest_supported(expected: VideoSettings, words: str) -> None:
    with pytest.raises(HalError) as caught:
        choose_size(OFFERS, expected, "it")
    assert words in str(caught.value)
    assert caught.value.fault is Fault.UNSUPPORTED


def test_a_camera_without_a_known_format() -> None:
    with pytest.raises(HalError, match="no format that is supported"):
        choose_size({}, VideoSettings(), "it")


@given(st.integers(1, 4000), st.integers(1, 4000))
def test_steps_are_kept_and_sizes_stay_within(width: int, height: int) -> None:
    result = OFFERS["grey"][0].nearest(width, height)
    assert 16 <= result[0] <= 1024
    assert 16 <= result[1] <= 768
    assert (result[0] - 16) % 16 == (result[1] - 16) % 8 == 0


def test_a_rate_is_chosen_within_a_hundredth() -> None:
    offers = (Rates(30000 / 1001, 30000 / 1001), Rates(15, 15), Rates(1, 10))
    assert choose_rate(offers, 30, "mode", "it") == 30000 / 1001
    assert choose_rate(offers, 7.5, "mode", "it") == 7.5
    with pytest.raises(HalError, match=r"it has no 20 frames/s in mode: use 15 or 29\.97 or 1 to 10"):
        choose_rate(offers, 20, "mode", "it")


# ---- pixels


def picture(jpeg: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(jpeg))
    image.load()
    return image.convert("RGB")


def near(colour: object, expected: tuple[int, int, int]) -> bool:
    assert isinstance(colour, tuple)
    return all(abs(a - b) <= 6 for a, b in zip(colour, expected, strict=True))


# Red and blue in Y'CbCr of Rec. ITU-R BT.601 with 8 bits: in video range, and in the full range of JPEG.
RED, BLUE = (81, 90, 240), (41, 240, 110)
RED_FULL, BLUE_FULL = (76, 85, 255), (29, 255, 107)


def yuyv(left: tuple[int, int, int], right: tuple[int, int, int], width: int, height: int, pad: int = 0) -> bytes:
    half = width // 4
    row = bytes((left[0], left[1], left[0], left[2])) * half + bytes((right[0], right[1], right[0], right[2])) * half
    return (row + b"\x77" * pad) * height


@pytest.mark.parametrize(
    "frame",
    [
        RawFrame(yuyv(RED, BLUE, 64, 48), "yuyv", 64, 48),
        RawFrame(yuyv(RED, BLUE, 64, 48, pad=32), "yuyv", 64, 48, 160),
        RawFrame(yuyv(RED_FULL, BLUE_FULL, 64, 48), "yuyv", 64, 48, 128, True),
        RawFrame((b"\xff\0\0" * 32 + b"\0\0\xff" * 32 + b"\x77" * 8) * 48, "rgb24", 64, 48, 200),
        RawFrame((b"\0\0\xff" * 32 + b"\xff\0\0" * 32) * 48, "bgr24", 64, 48, 192),
        RawFrame(
            (bytes([RED[0]]) * 32 + bytes([BLUE[0]]) * 32) * 48 + (bytes(RED[1:]) * 16 + bytes(BLUE[1:]) * 16) * 24,
            "nv12",
            64,
            48,
        ),
    ],
    ids=lambda frame: f"{frame.pixels}-{frame.stride}",
)
def test_colours_arrive_where_they_were(frame: RawFrame) -> None:
    image = picture(to_jpeg(frame))
    assert image.size == (64, 48)
    for y in (4, 24, 44):
        assert near(image.getpixel((8, y)), (255, 0, 0))
        assert near(image.getpixel((56, y)), (0, 0, 255))


def test_grey() -> None:
    image = picture(to_jpeg(RawFrame(bytes(range(0, 256, 4)) * 48, "grey", 64, 48)))
    assert near(image.getpixel((32, 20)), (128, 128, 128))


def test_the_last_row_need_not_be_padded() -> None:
    data = yuyv(RED, BLUE, 64, 48, pad=32)[:-32]
    assert near(picture(to_jpeg(RawFrame(data, "yuyv", 64, 48, 160))).getpixel((8, 47)), (255, 0, 0))


def jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 60).convert("RGB").save(buffer, "jpeg")
    return buffer.getvalue()


def without_tables(data: bytes) -> bytes:
    """Remove the Huffman tables from a JPEG, as cameras do in motion JPEG."""
    out, at = data[:2], 2
    while data[at : at + 2] != b"\xff\xda":
        length = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        out += data[at : at + length] if data[at : at + 2] != b"\xff\xc4" else b""
        at += length
    return out + data[at:]


def test_motion_jpeg_gets_its_huffman_tables_back() -> None:
    whole = jpeg()
    bare = without_tables(whole)
    assert HUFFMAN_TABLES[4:] not in bare
    assert picture(complete_jpeg(bare)).tobytes() == picture(whole).tobytes()
    assert complete_jpeg(bare).count(b"\xff\xc4") == 1  # Pillow decodes without the tables, but browsers do not
    assert complete_jpeg(whole + b"\0" * 50) == whole


@given(st.binary(max_size=200), st.sampled_from(["mjpeg", "yuyv", "nv12", "rgb24", "grey"]))
def test_a_frame_that_is_cut_is_refused(data: bytes, pixels: PixelFormat) -> None:
    with pytest.raises(ValueError, match="bytes"):
        to_jpeg(RawFrame(data, pixels, 64, 48))
    with pytest.raises(ValueError, match="not a complete JPEG"):
        complete_jpeg(jpeg()[: 300 + len(data)])


# ---- structures


@pytest.mark.skipif(struct.calcsize("@L") != 8, reason="figures of 64-bit platforms")
def test_sizes_and_requests_are_those_of_the_kernel_headers() -> None:
    """The expected values come from linux/videodev2.h on x86-64; other 64-bit Linux platforms share its layout."""
    sizes: dict[type[ctypes.Structure], int] = {
        v4l2.Capability: 104,
        v4l2.FormatDescription: 64,
        v4l2.Format: 208,
        v4l2.RequestBuffers: 20,
        v4l2.Buffer: 88,
        v4l2.StreamParameters: 204,
        v4l2.FrameSize: 44,
        v4l2.FrameInterval: 52,
    }
    assert {kind: ctypes.sizeof(kind) for kind in sizes} == sizes
    assert (v4l2.QUERYCAP, v4l2.ENUM_FMT, v4l2.S_FMT, v4l2.TRY_FMT) == (0x80685600, 0xC0405602, 0xC0D05605, 0xC0D05640)
    assert (v4l2.REQBUFS, v4l2.QUERYBUF, v4l2.QBUF, v4l2.DQBUF) == (0xC0145608, 0xC0585609, 0xC058560F, 0xC0585611)
    assert (v4l2.STREAMON, v4l2.STREAMOFF, v4l2.G_PARM, v4l2.S_PARM) == (0x40045612, 0x40045613, 0xC0CC5615, 0xC0CC5616)
    assert (v4l2.ENUM_FRAMESIZES, v4l2.ENUM_FRAMEINTERVALS) == (0xC02C564A, 0xC034564B)
    assert v4l2.fourcc("YUYV") == 0x56595559


# ---- a device with a fake kernel


class Played(CaptureDevice):
    """A camera with MJPG 640x480 and YUYV 320x240 that answers ioctls; a socket signals its frames."""

    def __init__(self) -> None:
        super().__init__("/dev/video7")
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.queued: list[int] = []
        self.filled: list[tuple[int, bytes, int]] = []
        self.sequence = 0
        self.fails = 0
        self.rate = (1001, 30000)

    def open(self) -> None:
        self.fd, self.name = self.near.fileno(), "Played"

    def ioctl(self, request: int, argument):  # type: ignore[no-untyped-def]
        if self.fails:
            raise OSError(self.fails, "played")
        if (name := ANSWERS.get(request)) is not None:
            getattr(self, name)(argument)
        return argument

    def enum_fmt(self, a: v4l2.FormatDescription) -> None:
        codes = ["H264", "MJPG", "YUYV"]
        if a.index >= len(codes):
            raise OSError(errno.EINVAL, "end")
        a.pixelformat = v4l2.fourcc(codes[a.index])

    def enum_size(self, a: v4l2.FrameSize) -> None:
        if a.pixel_format == v4l2.fourcc("YUYV"):
            raise OSError(errno.ENOTTY, "no ioctl")
        if a.index:
            raise OSError(errno.EINVAL, "end")
        a.type, a.sizes[0], a.sizes[1] = v4l2.DISCRETE, 640, 480

    def enum_rate(self, a: v4l2.FrameInterval) -> None:
        rates = [(1001, 30000), (1, 15)] if a.pixel_format == v4l2.fourcc("MJPG") else [(1, 15), (10, 75)]
        if a.index >= len(rates):
            raise OSError(errno.EINVAL, "end")
        a.type = v4l2.DISCRETE
        a.intervals[0].numerator, a.intervals[0].denominator = rates[a.index]

    def fmt(self, a: v4l2.Format) -> None:
        pix = a.fmt.pix
        mjpeg = pix.pixelformat == v4l2.fourcc("MJPG")
        pix.width, pix.height = (640, 480) if mjpeg else (320, 240)
        pix.bytesperline = 0 if mjpeg else 640

    def parm(self, a: v4l2.StreamParameters) -> None:
        capture = a.parm.capture
        if capture.timeperframe.denominator == 15000:
            self.rate = (1, 15)
        capture.capability = v4l2.CAP_TIMEPERFRAME
        capture.timeperframe.numerator, capture.timeperframe.denominator = self.rate

    def qbuf(self, a: v4l2.Buffer) -> None:
        assert a.index not in self.queued
        self.queued.append(a.index)

    def dqbuf(self, a: v4l2.Buffer) -> None:
        if not self.filled:
            raise BlockingIOError(errno.EAGAIN, "nothing")
        a.index, data, a.flags = self.filled.pop(0)
        self.near.recv(1)
        self.maps[a.index].seek(0)
        self.maps[a.index].write(data)
        a.bytesused = len(data)
        self.sequence += 1

    def _map(self) -> None:
        for index in range(4):
            self.maps.append(mmap.mmap(-1, 640 * 480 * 2))
            self.qbuf(self.buffer(index))

    def deliver(self, data: bytes, flags: int = 0) -> None:
        self.filled.append((self.queued.pop(0), data, flags))
        self.far.send(b"!")

    def close(self) -> None:
        self.fd = -1
        super().close()
        self.near.close()
        self.far.close()


ANSWERS: dict[int, str] = {
    v4l2.ENUM_FMT: "enum_fmt",
    v4l2.ENUM_FRAMESIZES: "enum_size",
    v4l2.ENUM_FRAMEINTERVALS: "enum_rate",
    v4l2.TRY_FMT: "fmt",
    v4l2.S_FMT: "fmt",
    v4l2.G_PARM: "parm",
    v4l2.S_PARM: "parm",
    v4l2.QBUF: "qbuf",
    v4l2.DQBUF: "dqbuf",
}

Start = Callable[..., "tuple[Played, LinuxVideo]"]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    device = Played()
    worker = BusWorker("camera")
    async with worker.opened():

        def begin(**settings: object) -> tuple[Played, LinuxVideo]:
            device.start(VideoSettings(**settings))  # type: ignore[arg-type]
            return device, LinuxVideo(device, worker)

        yield begin
        if device.fd >= 0:
            device.close()


async def test_the_agreed_format(start: Start) -> None:
    _, video = start()
    assert (video.name, video.mode) == ("Played", VideoMode("mjpeg", 640, 480, 29.97))


async def test_a_rate_and_a_format_that_are_asked_for(start: Start) -> None:
    device, video = start(format="yuyv", rate=15.0)
    assert video.mode == VideoMode("yuyv", 320, 240, 15)
    assert device.stride == 640


async def test_a_rate_that_is_offered_and_not_kept_is_refused(start: Start) -> None:
    with pytest.raises(HalError, match=r"selected 29\.97 frames/s instead of 7\.5: use 29\.97, or omit") as caught:
        start(format="yuyv", rate=7.5)
    assert caught.value.fault is Fault.UNSUPPORTED


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rate": 20.0}, r"no 20 frames/s in mjpeg 640x480.*use 15 or 29\.97"),
        ({"format": "nv12"}, "no format nv12"),
        ({"width": 641}, "no size 641xany: use 640x480"),
    ],
)
async def test_unsupported_controls(start: Start, settings: dict[str, object], words: str) -> None:
    with pytest.raises(HalError, match=words):
        start(**settings)


async def test_the_newest_frame_is_kept_and_the_others_go_back(start: Start) -> None:
    device, video = start()
    with pytest.raises(HalError, match="no frame"):
        await video.still()
    frames = [jpeg() + bytes(n) for n in range(3)]
    for frame in frames:
        device.deliver(frame)
        with trio.fail_after(30):
            await video.arrived()
    assert video.frames == 3
    assert len(device.queued) == 3  # and the newest frame is kept
    still = await video.still()
    assert still.jpeg == frames[2][: len(frames[2]) - 2]
    assert abs(still.captured_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert await video.still() is still
    device.deliver(frames[0])
    await video.arrived()
    assert (await video.still()) is not still


async def test_frames_that_wait_are_skipped_for_the_newest(start: Start) -> None:
    device, video = start(format="yuyv")
    for left in (RED, BLUE, RED):
        device.deliver(yuyv(left, RED, 320, 240))
    device.deliver(yuyv(BLUE, BLUE, 320, 240))
    await video.arrived()
    assert video.frames == 4
    assert near(picture((await video.still()).jpeg).getpixel((10, 10)), (0, 0, 255))


async def test_a_damaged_frame_is_skipped(start: Start) -> None:
    device, video = start()
    device.deliver(b"damaged", v4l2.BUFFER_ERROR)
    device.deliver(jpeg())
    with trio.fail_after(30):
        await video.arrived()
    assert (video.frames, video.broken) == (1, 1)
    device.deliver(b"no picture")
    await video.arrived()
    with pytest.raises(HalError, match="10 bytes are not a complete JPEG") as caught:
        await video.still()
    assert caught.value.fault is Fault.BUS


async def test_raw_frames_are_converted_in_another_thread(start: Start) -> None:
    device, video = start(format="yuyv")
    device.deliver(yuyv(RED, BLUE, 320, 240))
    with trio.fail_after(30):
        await video.arrived()
        image = picture((await video.still()).jpeg)
    assert near(image.getpixel((10, 10)), (255, 0, 0))


@pytest.mark.parametrize(
    ("number", "fault"), [(errno.ENODEV, Fault.GONE), (errno.EIO, Fault.GONE), (errno.EBUSY, Fault.BUSY)]
)
async def test_system_errors_become_readable_messages(start: Start, number: int, fault: Fault) -> None:
    device, video = start()
    device.fails = number
    with pytest.raises(HalError, match="/dev/video7") as caught:
        await video.arrived()
    assert caught.value.fault is fault
    device.fails = 0


async def test_a_camera_that_is_being_closed_is_gone(start: Start) -> None:
    device, video = start()
    device.deliver(jpeg())
    await video.arrived()
    video.closed = True
    device.close()
    with pytest.raises(HalError, match="is closing") as caught:
        await video.still()
    assert caught.value.fault is Fault.GONE


def test_a_bus_without_room_is_explained() -> None:
    device = Played()
    device.mode = VideoMode("yuyv", 1920, 1080, 30)
    error = device.error(OSError(errno.ENOSPC, ""))
    assert "does not have enough bandwidth for yuyv 1920x1080 at 30/s: choose mjpeg" in str(error)
    device.close()


def test_a_camera_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    for number, name in ((10, "Codec"), (2, "USB Cam")):
        place = tmp_path / f"sys/class/video4linux/video{number}"
        place.mkdir(parents=True)
        (place / "name").write_text(name + "\n")
    with pytest.raises(HalError, match=r"/dev/v.*there are /dev/video2 \(USB Cam\), /dev/video10 \(Codec\)") as caught:
        find_camera("/dev/v4l/by-id/none", tmp_path)
    assert caught.value.fault is Fault.GONE
    with pytest.raises(HalError, match="no camera is called 'Other'"):
        find_camera("Other", tmp_path)
    with pytest.raises(HalError, match="/dev/video2: No such file"):
        find_camera("USB Cam", tmp_path)
    with pytest.raises(HalError, match="there are no cameras"):
        find_camera("", tmp_path / "nowhere")
    plain = tmp_path / "dev/video2"
    plain.parent.mkdir()
    plain.touch()
    with pytest.raises(HalError, match="is not a camera") as caught:
        find_camera("video2", tmp_path)
    assert caught.value.fault is Fault.UNSUPPORTED


def test_a_rate_may_differ_by_the_tolerance_at_both_ends() -> None:
    offers = (Rates(10, 20),)
    assert choose_rate(offers, 20 * (1 + TOLERANCE), "m", "c") == 20
    assert choose_rate(offers, 10 * (1 - TOLERANCE), "m", "c") == 10
