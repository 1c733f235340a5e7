"""Compatibility with camera drivers that implement an older version of the API.

`GetImages` replaced `GetImage`, whose messages are no longer published. The request has the fields of
`GetPointCloudRequest` (name = 1, mime_type = 2, extra = 99) and the reply those of `GetPointCloudResponse`
(mime_type = 1, the data = 2), so these messages are used in their place.

Older images of `GetImages` have a number (`format` = 2, no longer published) instead of a media type. For them the
media type is detected from their first bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from engine.components.media.camera import Camera, Image, Images, PointCloud
from engine.components.media.image_format import mime_type
from rpc.api import ApiClient
from schema import ErrorKind, MachineError

_GET_IMAGE: Final = "/viam.component.camera.v1.CameraService/GetImage"
_RAISED: Final = "NotImplementedError - "  # how the official Python SDK reports a method that raises it


def is_missing(error: MachineError) -> bool:
    """Return whether `error` means that the driver does not implement the method."""
    return error.kind is ErrorKind.UNSUPPORTED or (
        error.kind is ErrorKind.INTERNAL and error.message.startswith(_RAISED)
    )


async def _get_image(client: ApiClient, name: str, arguments: Mapping[str, Any]) -> Images:
    """Return one image without a source name, as JPEG if the driver supports it."""
    if arguments.get("filter_source_names"):
        message = f"{name} returns a single image, which has no source name"
        raise MachineError(message, kind=ErrorKind.INVALID, remedy="omit filter_source_names")
    reply: PointCloud = await client.call_at(
        _GET_IMAGE, Camera, name, "get_point_cloud", mime_type="image/jpeg", extra=arguments.get("extra")
    )
    return Images([Image(reply.point_cloud, reply.mime_type)])


def _with_types(reply: Images) -> Images:
    if all(image.mime_type for image in reply.images):
        return reply
    images = [image if image.mime_type else replace(image, mime_type=mime_type(image.image)) for image in reply.images]
    return replace(reply, images=images)


OLDER: Final[Mapping[tuple[type, str], Callable[[ApiClient, str, Mapping[str, Any]], Any]]] = {
    (Camera, "get_images"): _get_image
}
"""Replacements, by base class and method, for methods that a driver does not implement.

Each takes the client, the resource's name there and the arguments, and returns what the method returns.
"""

COMPLETED: Final[Mapping[tuple[type, str], Callable[[Any], Any]]] = {(Camera, "get_images"): _with_types}
"""Functions, by base class and method, that complete the results of older drivers."""
