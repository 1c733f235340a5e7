"""Thumbnails: their appearance, images that have none, permissions, and caching."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image

from cloud.server.memory import MemoryCloud
from cloud.web.api.thumbnails import EDGE, MAX_PIXELS, Thumbnails, small
from schema.errors import ErrorKind, MachineError
from support.media.pictures import FORMATS
from tests.unit.cloud.captured import Uploads
from tests.unit.cloud.pages import browser, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML, JSON


def picture(format_: str = "JPEG", mode: str = "RGB", size: tuple[int, int] = (800, 600), **options: object) -> bytes:
    created = io.BytesIO()
    Image.new(mode, size, 200 if mode in ("L", "P", "1") else None).save(created, format_, **options)
    return created.getvalue()


def opened(data: bytes) -> Image.Image:
    result = Image.open(io.BytesIO(data))
    assert result.format == "WEBP"
    return result


def claiming(width: int, height: int) -> bytes:
    """Return a PNG whose header claims this size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"")
    chunks = [struct.pack(">I", len(item) - 4) + item + struct.pack(">I", zlib.crc32(item)) for item in (header, data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_scaled_with_its_aspect_ratio(format_: str) -> None:
    assert opened(small(picture(format_))).size == (EDGE, EDGE * 3 // 4)


@pytest.mark.parametrize(
    ("format_", "mode", "kept"),
    [("PNG", "L", "RGB"), ("PNG", "LA", "RGBA"), ("PNG", "RGBA", "RGBA"), ("GIF", "P", "RGB"), ("PNG", "1", "RGB")],
)
def test_transparency_is_kept(format_: str, mode: str, kept: str) -> None:
    result = opened(small(picture(format_, mode)))
    assert result.mode in (kept, "RGB")  # WebP drops an alpha channel without transparency
    assert result.size == (EDGE, EDGE * 3 // 4)


def test_small_images_are_not_enlarged_and_orientation_is_applied() -> None:
    assert opened(small(picture(size=(20, 10)))).size == (20, 10)
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: rotate by 90 degrees
    assert opened(small(picture(exif=turned))).size == (EDGE * 3 // 4, EDGE)


def test_a_large_photograph_is_decoded_at_a_fraction() -> None:
    side = int(MAX_PIXELS**0.5) + 200
    assert opened(small(picture(size=(side, side), mode="L"))).size == (EDGE, EDGE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        picture("PNG")[:100],
        picture("JPEG")[:-200],
        picture("TIFF"),
        claiming(60_000, 60_000),
        claiming(MAX_PIXELS, 2),
    ],
    ids=["nothing", "svg", "cut png", "cut jpeg", "tiff", "a bomb", "a line"],
)
def test_other_files_have_no_thumbnail(data: bytes) -> None:
    with pytest.raises(MachineError) as caught:
        small(data)
    assert caught.value.kind is ErrorKind.INVALID


async def test_a_thumbnail_has_the_permissions_of_its_file_and_is_made_once(cloud: MemoryCloud, part: str) -> None:
    subject = await Uploads(cloud, part).picture(0, picture("PNG"))
    path = f"/files/{subject}/thumbnail"
    person = await signed_in(cloud)
    value = await person.get(path)
    assert (value.status, value.headers["content-type"]) == (200, "image/webp")
    assert value.headers["cache-control"] == "private, max-age=86400"
    again = await person.send("GET", path, {**HTML, "if-none-match": value.headers["etag"]})
    assert (again.status, again.body) == (304, b"")

    stranger = browser(cloud)
    assert (await stranger.get(path, JSON)).status == 401
    assert (await stranger.get(f"{path}?signature=x&expires=1", JSON)).status == 401
    robot = await cloud.app("new_robot", name="other", location=cloud.first.location)
    other = await signed_in(cloud, await key_at(cloud, "robot", robot))
    assert (await other.get(path, JSON)).status == 404


async def test_a_file_that_is_not_an_image(cloud: MemoryCloud, part: str) -> None:
    up, person = Uploads(cloud, part), await signed_in(cloud)
    for data, name in ((b"text", "notes.txt"), (b"\x89PNG nonsense", "x.png")):
        reply = await person.get(f"/files/{await up.file(data, name)}/thumbnail", JSON)
        assert (reply.status, "cannot create a thumbnail" in reply.text) == (400, True), name
    assert (await person.get("/files/nothing/thumbnail", JSON)).status == 404


async def test_the_cache_stays_within_its_limit(cloud: MemoryCloud) -> None:
    thumbnails = Thumbnails(cloud.cloud, room=100)
    for digest in "abc":
        thumbnails.cache(digest, b"x" * 40)
    assert (thumbnails.cached_thumbnail("a"), thumbnails.cached_thumbnail("b"), thumbnails.cached_thumbnail("c")) == (
        None,
        b"x" * 40,
        b"x" * 40,
    )
    thumbnails.cached_thumbnail("b")
    thumbnails.cache("d", b"x" * 40)
    assert (thumbnails.cached_thumbnail("c"), thumbnails.cached_thumbnail("b")) == (None, b"x" * 40)
    thumbnails.cache("e", b"x" * 101)
    assert thumbnails.cached_thumbnail("e") is None
