"""Cameras whose driver implements only GetImage, the predecessor of GetImages."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from engine.components.media.camera import Camera, Image, Images
from engine.proxy import Proxied, proxy_of
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from runtime.parts.modules.foreign import Raw
from schema.errors import ErrorKind, MachineError

SERVICE = "/viam.component.camera.v1.CameraService/"


class Driver:
    """Answer the paths in `replies` with bytes or an error; `requests` keeps the request bytes by method."""

    def __init__(self, **replies: bytes | GRPCError) -> None:
        self.replies = replies
        self.requests: dict[str, bytes] = {}

    def get(self, path: str) -> Handler | None:
        method = path.removeprefix(SERVICE)
        if method not in self.replies:
            return None

        async def answer(stream: Any) -> None:
            self.requests[method] = await stream.recv_message()
            reply = self.replies[method]
            if isinstance(reply, GRPCError):
                raise reply
            await stream.send_message(Raw(reply))

        return Handler(answer, Cardinality.UNARY_UNARY, Raw, Raw)


def camera(driver: Driver) -> Camera:
    class Local(Proxied):
        def remote(self) -> tuple[ApiClient, str]:
            return ApiClient(MemoryChannel(driver)), "eye"

    created: Any = proxy_of(Camera, Local)
    result: Camera = created.__new__(created)
    return result


MIME, PICTURE = b"image/png", b"\x89PNG"
REPLY = b"\x0a\x09" + MIME + b"\x12\x04" + PICTURE  # GetImageResponse: mime_type = 1, image = 2


@pytest.mark.parametrize(
    "newer",
    [
        {},
        {"GetImages": GRPCError(Status.UNIMPLEMENTED, "Method not found!")},
        {"GetImages": GRPCError(Status.UNKNOWN, "NotImplementedError -  - file_name='camera.py'")},
    ],
    ids=["no such method", "unimplemented", "raised by a driver on the Python SDK"],
)
async def test_the_image_of_a_driver_that_has_only_get_image_is_the_camera_s_only_one(newer: dict[str, Any]) -> None:
    driver = Driver(GetImage=REPLY, **newer)
    assert await camera(driver).get_images(extra={"a": 1}) == Images([Image(PICTURE, "image/png", "")])
    # GetImageRequest: name = 1, mime_type = 2, extra = 99
    assert driver.requests["GetImage"].startswith(b"\x0a\x03eye\x12\x0aimage/jpeg\x9a\x06")


def image(source: bytes, form: int, data: bytes) -> bytes:
    """Encode an Image as published before it had a media type: source_name = 1, format = 2, image = 3."""
    first = b"\x0a%c%b\x10%c\x1a%c%b" % (len(source), source, form, len(data), data)
    return b"\x0a%c%b" % (len(first), first)


async def test_images_with_a_number_for_their_format_have_a_media_type() -> None:
    jpeg, png, depth, raw = b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"DEPTHMAP" + bytes(8), b"RGBA" + bytes(8)
    pictures = {(b"color", 3): jpeg, (b"", 4): png, (b"depth", 2): depth, (b"raw", 1): raw}
    reply = b"".join(image(source, form, data) for (source, form), data in pictures.items())
    reply += b"\x0a\x0f\x1a\x04????\x22\x07image/x"  # the current form, with a media type
    images = await camera(Driver(GetImages=reply)).get_images()
    assert [(item.source_name, item.mime_type, item.image) for item in images.images] == [
        ("color", "image/jpeg", jpeg),
        ("", "image/png", png),
        ("depth", "image/vnd.viam.dep", depth),
        ("raw", "image/vnd.viam.rgba", raw),
        ("", "image/x", b"????"),
    ]


async def test_a_source_cannot_be_chosen_of_such_a_driver() -> None:
    driver = Driver(GetImage=REPLY)
    with pytest.raises(MachineError, match="omit filter_source_names") as raised:
        await camera(driver).get_images(["depth"])
    assert raised.value.kind is ErrorKind.INVALID
    assert not driver.requests


async def test_a_driver_without_images_does_not_implement_them() -> None:
    with pytest.raises(MachineError) as raised:
        await camera(Driver()).get_images()
    assert raised.value.kind is ErrorKind.UNSUPPORTED


async def test_other_errors_of_get_images_are_those_of_the_call() -> None:
    driver = Driver(GetImage=REPLY, GetImages=GRPCError(Status.UNKNOWN, "RuntimeError - no light"))
    with pytest.raises(MachineError, match="no light"):
        await camera(driver).get_images()
    assert "GetImage" not in driver.requests
