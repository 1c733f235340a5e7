"""Images that are signed with a key of the tests."""

from __future__ import annotations

import hashlib
from functools import cache

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from command.micro.package import image_of


@cache
def key(number: int = 0) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 3072)


def modulus(number: int = 0) -> int:
    return key(number).public_key().public_numbers().n


def sign(data: bytes, number: int = 0) -> bytes:
    return key(number).sign(data, padding.PKCS1v15(), hashes.SHA256())


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def image(files: dict[str, bytes], sequence: int, number: int = 0) -> bytes:
    return image_of(files, f"1.{sequence}", sequence, key(number))
