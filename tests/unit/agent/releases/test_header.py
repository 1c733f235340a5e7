"""The identity of release files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from agent.releases.header import check_identity, read_identity
from schema.errors import ErrorKind, MachineError
from uplink.releases import MAX_HEADER, Header

RELEASE = Header("machine-agent", "1.2.3", "linux/aarch64")
LINES = b"#!/bin/sh\n# machine-release " + msgspec.json.encode(RELEASE) + b"\n"


def test_the_identity_is_read_without_the_rest_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(LINES)
    os.truncate(path, 1 << 40)  # sparse: reading all of it would fail
    assert read_identity(path) == RELEASE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF",
        LINES[:40],
        b"#!/bin/sh\n" + b"#" * MAX_HEADER + b"\n" + LINES,
        LINES.replace(b"{", b"{" + b" " * MAX_HEADER),
    ],
    ids=["empty", "binary", "truncated", "late", "long"],
)
def test_a_file_without_a_complete_header_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(MachineError, match=r"/file: the .*header") as caught:
        read_identity(path)
    assert caught.value.kind is ErrorKind.INVALID


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="/missing cannot be read: No such file") as caught:
        read_identity(tmp_path / "missing")
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_a_path_through_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="/file/below cannot be read: Not a directory") as caught:
        read_identity(tmp_path / "file" / "below")
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot be read: Is a directory") as caught:
        read_identity(tmp_path)
    assert caught.value.kind is ErrorKind.INVALID


def test_a_named_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MachineError, match="/pipe is not a regular file"):
        read_identity(tmp_path / "pipe")


def test_the_expected_release_is_accepted() -> None:
    check_identity(RELEASE, Header("machine-agent", "1.2.3", "linux/aarch64"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (Header("machine-server", "1.2.3", "linux/aarch64"), "its program is machine-server instead of machine-agent"),
        (Header("machine-agent", "1.2.4", "linux/aarch64"), "its version is 1.2.4 instead of 1.2.3"),
        (
            Header("machine-agent", "1.2.2", "linux/x86_64"),
            "its version is 1.2.2 instead of 1.2.3, its platform is linux/x86_64 instead of linux/aarch64",
        ),
    ],
)
def test_another_release_is_refused_with_all_differences(header: Header, message: str) -> None:
    with pytest.raises(MachineError, match=message) as caught:
        check_identity(header, RELEASE)
    assert caught.value.kind is ErrorKind.INVALID
