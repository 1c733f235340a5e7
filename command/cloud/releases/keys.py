"""Keys of people for signed releases: Ed25519 in files of their own, which are never sent anywhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from schema import ErrorKind, MachineError
from support.files import create_file, sync_folder

PASSPHRASE: Final = "MACHINE_RELEASE_PASSPHRASE"
"""Environment variable with the passphrase of the keys, for programs; people are asked for it."""

ENDING: Final = ".pem"
MAX_KEY_FILE: Final = 10_000  # bytes

Ask = Callable[[], str]
"""Returns the passphrase. Called at most once, and only if a key has one."""


def create(folder: Path, role: str, passphrase: str) -> Any:
    """Create a key in a new file of `folder` that only its owner can read; return its signer.

    The folder is created if it does not exist. Without a passphrase the key is not encrypted. Raises OSError.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner

    private = Ed25519PrivateKey.generate()
    signer = CryptoSigner(private)
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    content = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{role}-{signer.public_key.keyid[:12]}{ENDING}"
    create_file(path, content)
    sync_folder(folder)
    return signer


def load(folders: Iterable[Path], ask: Ask) -> Mapping[str, Any]:
    """Return the signers of all keys in these folders by key id.

    Raises MachineError with the file: PRECONDITION if there is no key or other users can read one, PERMISSION for a
    wrong passphrase, INVALID for a file that is not a key.
    """
    signers: dict[str, Any] = {}
    passphrase: list[str] = []  # empty until it was asked for

    def once() -> str:
        if not passphrase:
            passphrase.append(ask())
        return passphrase[0]

    searched = list(folders)
    for folder in searched:
        for path in sorted(folder.glob(f"*{ENDING}")):
            signer = _read(path, once)
            signers[signer.public_key.keyid] = signer
    if not signers:
        raise MachineError(
            f"there is no key in {', '.join(map(str, searched))}",
            kind=ErrorKind.PRECONDITION,
            remedy="give the folder of `machine cloud releases init` with --keys",
        )
    return signers


def has_keys(folder: Path) -> bool:
    """Return whether a folder has files with keys."""
    return any(folder.glob(f"*{ENDING}"))


def _read(path: Path, ask: Ask) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise MachineError(
                f"other users can read the key {path}",
                kind=ErrorKind.PRECONDITION,
                remedy=f"`chmod 600 {path}`, and replace the key if it may have been copied",
            )
        content = file.read(MAX_KEY_FILE)
    try:
        try:
            private = load_pem_private_key(content, None)
        except TypeError:  # it is encrypted
            try:
                private = load_pem_private_key(content, ask().encode())
            except ValueError:
                raise MachineError(
                    f"the passphrase of {path} is wrong", kind=ErrorKind.PERMISSION, remedy="repeat the command"
                ) from None
    except ValueError:
        raise _not_a_key(path) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise _not_a_key(path)
    return CryptoSigner(private)


def _not_a_key(path: Path) -> MachineError:
    return MachineError(
        f"{path} is not a key for releases", kind=ErrorKind.INVALID, remedy="restore it from your copy, or remove it"
    )
