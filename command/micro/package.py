"""Signed images of the micro server; see micro.update.image for their format."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from micro.update import image
from micro.update.image import MAGIC, BadImage, Manifest
from micro.update.signature import EXPONENT, SIZE
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

ROOT: Final = Path(image.__file__).parents[2]
FOLDERS: Final = ("micro", "micro/wire", "micro/engine", "micro/components", "micro/hosts", "micro/update")
UPDATE_KEY: Final = "update.key"


def sources() -> dict[str, bytes]:
    """Return the files of the micro server by their names on a device."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in paths}


def create_key(file: Path) -> Path:
    """Create a key in `file`, readable by its owner only; return the file for devices next to it. MachineError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(EXPONENT, SIZE * 8)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(text)
    except FileExistsError:
        raise MachineError(
            f"{file} exists", kind=ErrorKind.INVALID, remedy="devices with its key need it: choose another name"
        ) from None
    except OSError as error:
        raise MachineError(f"{file} cannot be written: {error.strerror}", kind=ErrorKind.INVALID) from None
    public = file.with_name(UPDATE_KEY)
    public.write_text(f"{key.public_key().public_numbers().n:x}\n")
    return public


def _read_key(file: Path) -> RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    try:
        key = serialization.load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise MachineError(f"{file} has no key: {error}", kind=ErrorKind.INVALID) from None
    if not isinstance(key, RSAPrivateKey) or key.key_size != SIZE * 8:
        raise MachineError(
            f"{file} is not an RSA key of {SIZE * 8} bits",
            kind=ErrorKind.INVALID,
            remedy="create one with `machine micro key`",
        )
    return key


def image_of(files: Mapping[str, bytes], version: str, sequence: int, key: RSAPrivateKey) -> bytes:
    """Return a signed image. MachineError if devices would not accept it."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    names = sorted(files)
    entries = [[name, len(files[name]), hashlib.sha256(files[name]).hexdigest()] for name in names]
    manifest = json.dumps({"version": version, "sequence": sequence, "files": entries}).encode()
    try:
        Manifest(manifest)
    except BadImage as error:
        raise MachineError(str(error), kind=ErrorKind.INVALID) from None
    signature = key.sign(manifest, padding.PKCS1v15(), hashes.SHA256())
    return b"".join([MAGIC, len(manifest).to_bytes(4, "big"), manifest, signature, *(files[name] for name in names)])


def write_image(output: Path, key_file: Path, files: Mapping[str, bytes], version: str, sequence: int) -> int:
    """Write an image and return its size. MachineError."""
    data = image_of(files, version, sequence, _read_key(key_file))
    try:
        output.write_bytes(data)
    except OSError as error:
        raise MachineError(f"{output} cannot be written: {error.strerror}", kind=ErrorKind.INVALID) from None
    return len(data)
