"""Drivers that know only the method which a published one has replaced, or only fields that it no longer has.

`GetImages` of cameras replaced `GetImage`, whose messages are no longer published. Its request has the fields of
`GetPointCloudRequest` (name = 1, mime_type = 2, extra = 99) and its reply those of `GetPointCloudResponse`
(mime_type = 1, the data = 2), so that these messages stand in for them.

Images of `GetImages` had no media type but a number (`format` = 2), which is no longer published: such images get the
type that their first bytes tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from rpc.api.client import ApiClient
from runtime.components.camera import Camera, Image, Images, PointCloud
from runtime.media import mime_type
from schema.errors import ErrorKind, MachineError

_GET_IMAGE: Final = "/viam.component.camera.v1.CameraService/GetImage"
_RAISED: Final = "NotImplementedError - "  # how the official Python SDK reports a method that raises it


def is_missing(error: MachineError) -> bool:
    """Whether an error says that the driver does not implement the method."""
    return error.kind is ErrorKind.UNSUPPORTED or (
        error.kind is ErrorKind.INTERNAL and error.message.startswith(_RAISED)
    )


async def _get_image(client: ApiClient, name: str, arguments: Mapping[str, Any]) -> Images:
    """One image without a source name, as JPEG if the driver can choose."""
    if arguments.get("filter_source_names"):
        text = f"{name} gives one image, which has no source name"
        raise MachineError(text, kind=ErrorKind.INVALID, remedy="leave out filter_source_names")
    found: PointCloud = await client.call_at(
        _GET_IMAGE, Camera, name, "get_point_cloud", mime_type="image/jpeg", extra=arguments.get("extra")
    )
    return Images([Image(found.point_cloud, found.mime_type)])


def _with_types(found: Images) -> Images:
    if all(image.mime_type for image in found.images):
        return found
    images = [image if image.mime_type else replace(image, mime_type=mime_type(image.image)) for image in found.images]
    return replace(found, images=images)


OLDER: Final[Mapping[tuple[type, str], Callable[[ApiClient, str, Mapping[str, Any]], Any]]] = {
    (Camera, "get_images"): _get_image
}
"""By base class and method: what to call instead where the driver does not implement the method.

Each takes the client, the resource's name there and the arguments, and returns what the method returns.
"""

COMPLETED: Final[Mapping[tuple[type, str], Callable[[Any], Any]]] = {(Camera, "get_images"): _with_types}
"""By base class and method: what fills in a result that lacks what older drivers do not tell."""
