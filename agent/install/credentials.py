"""The credentials file of a system, which no other user can read at any moment. The functions block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from schema.decoding import parse_json
from schema.document import Cloud, decode_document
from support.files import replace_file
from uplink import FileSource

CA_FILE: Final = "machine-cloud-ca.pem"
"""Name of the file with the certificates of the cloud, in the folder of the credentials."""


def import_credentials(source: Path, destination: Path) -> str:
    """Copy a credentials file, and the certificates that it names, to `destination` and its folder; return the part id.

    The copy has mode 0600 from the start and appears completely or not at all; the certificates become CA_FILE. Raises
    MachineError if the file does not have the credentials of a machine, or cannot be copied; the former ones then stay.
    """
    text = _read(source)
    cloud = cloud_of(source, text)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        if cloud.ca_file:
            authorities = destination.parent / CA_FILE
            replace_file(authorities, _read(source.parent / cloud.ca_file))
            authorities.chmod(0o644)
            if cloud.ca_file != CA_FILE:
                document = parse_json(text)
                document["cloud"]["ca_file"] = CA_FILE
                text = json.dumps(document, indent=2).encode() + b"\n"
        replace_file(destination, text)
    except OSError as error:
        raise MachineError(f"{destination} cannot be written: {error.strerror}", kind=ErrorKind.PRECONDITION) from None
    return cloud.id


def cloud_of(path: Path, text: bytes) -> Cloud:
    """Return the section `cloud` of a credentials file. INVALID if machine-agent could not use it."""
    decoded = decode_document(text)
    cloud = decoded.document.cloud if decoded.document is not None else None
    if cloud is not None and cloud.app_address:
        return cloud
    problems = [str(problem) for problem in decoded.problems]
    raise MachineError(
        f"{path} does not have the credentials of a machine: {problems[0] if problems else 'no `cloud.app_address`'}",
        kind=ErrorKind.INVALID,
        remedy="copy them from the machine's page in the cloud",
    )


def _read(path: Path) -> bytes:
    reading = FileSource(path).read()
    if reading.data is None:
        raise MachineError(str(reading.problem), kind=ErrorKind.PRECONDITION)
    return reading.data
