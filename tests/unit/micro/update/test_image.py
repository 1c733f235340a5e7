from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micro.update.image import MAGIC, BadImage, ImageReader, Manifest, is_safe
from micro.update.signature import is_valid
from schema import MachineError
from tests.unit.micro.update.packing import image, modulus, sha256, sign

FILES = {"micro/a.py": b"a" * 3000, "micro/wire/b.py": b"", "c.py": b"c"}


class Reading:
    def __init__(self, number: int = 0) -> None:
        self.files: dict[str, bytes] = {}
        self.begun: list[Manifest] = []
        self.reader = ImageReader(modulus(number), hashlib.sha256, self.begun.append, self.write)

    def write(self, name: str, data: bytes) -> None:
        assert self.begun, "nothing may be written before the signature is known to be valid"
        self.files[name] = self.files.get(name, b"") + data

    def feed(self, data: bytes, size: int = 512) -> None:
        for at in range(0, len(data), size):
            self.reader.feed(data[at : at + size])


@pytest.mark.parametrize("size", [1, 7, 512, 1 << 20])
def test_images_are_read_in_pieces(size: int) -> None:
    reading = Reading()
    reading.feed(image(FILES, 3), size)
    assert reading.reader.is_complete
    assert reading.files == FILES
    assert reading.begun[0].sequence == 3


def test_other_keys_are_refused_before_anything_is_written() -> None:
    reading = Reading(1)
    with pytest.raises(BadImage, match="signature"):
        reading.feed(image(FILES, 3))
    assert not reading.files
    assert not reading.begun


@given(st.integers(0, 4000), st.integers(1, 255))
def test_every_changed_byte_is_noticed(at: int, change: int) -> None:
    data = bytearray(image(FILES, 3))
    at %= len(data)
    data[at] ^= change
    reading = Reading()
    refused = False
    try:
        reading.feed(bytes(data))
    except BadImage:
        refused = True
    assert refused or not reading.reader.is_complete


def test_longer_and_shorter_images() -> None:
    data = image(FILES, 3)
    reading = Reading()
    reading.feed(data[:-1])
    assert not reading.reader.is_complete
    reading.feed(data[-1:])
    with pytest.raises(BadImage, match="longer"):
        reading.feed(b"x")


@pytest.mark.parametrize(
    "name",
    ["", "/etc", "../a", "a/../b", "a//b", ".hidden", "a/.b", "a b", "ä", "a/b/c/d/e", "a" * 81, "a\\b", "a\0", "a/"],
)
def test_names_that_leave_the_slot(name: str) -> None:
    assert not is_safe(name)
    with pytest.raises(MachineError, match="not allowed"):
        image({name: b""}, 1)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"version": "1", "sequence": 0, "files": [["a", 0, "00" * 32]]},
        {"version": "1", "sequence": 1, "files": []},
        {"version": "1", "sequence": 1, "files": [["a", -1, "00" * 32]]},
        {"version": "1", "sequence": 1, "files": [["a", 70_000, "00" * 32]]},
        {"version": "1", "sequence": 1, "files": [["a", 1, "00"]]},
        {"version": "1", "sequence": 1, "files": [["a", 1, "zz"]]},
        {"version": "1", "sequence": "x", "files": [["a", 1, "00" * 32]]},
        {"version": "1", "sequence": 1, "files": [["a", 0, "00" * 32]] * 101},
    ],
)
def test_manifests_that_are_not_valid_although_they_are_signed(value: object) -> None:
    manifest = json.dumps(value).encode()
    with pytest.raises(BadImage, match="manifest"):
        Reading().feed(MAGIC + len(manifest).to_bytes(4, "big") + manifest + sign(manifest))


def test_manifests_are_bounded() -> None:
    for size in (0, 8193, 1 << 31):
        with pytest.raises(BadImage, match="not an image"):
            Reading().feed(MAGIC + size.to_bytes(4, "big") + b"x")


def test_signatures() -> None:
    digest, signature = sha256(b"data"), sign(b"data")
    assert is_valid(modulus(), digest, signature)
    assert not is_valid(modulus(1), digest, signature)
    assert not is_valid(modulus(), sha256(b"other"), signature)
    assert not is_valid(modulus(), digest, signature[:-1])
    assert not is_valid(modulus(), digest, bytes(384))
    assert not is_valid(modulus(), digest, b"\xff" * 384)
    assert not is_valid(modulus(), digest, (int.from_bytes(signature, "big") + modulus()).to_bytes(385, "big"))
    assert not is_valid(modulus() >> 1024, digest, signature), "a shorter key"
    # A forged padding, as of Bleichenbacher's attack: the digest in front, garbage behind. Any exponent 3 is absent.
    assert not is_valid(modulus(), digest, b"\0\1" + signature[2:])
