"""Names, limits and headers of releases."""

from __future__ import annotations

from typing import Any

import pytest

from schema.errors import MachineError
from uplink.releases import Custom, Header, custom_of, normal_platform, read_header

PATH = "machine-server/1.2.3/linux-aarch64"
CUSTOM = {"program": "machine-server", "version": "1.2.3", "platform": "linux/aarch64", "channels": ["dev"]}


def test_a_target() -> None:
    assert custom_of(PATH, {**CUSTOM, "new": 1}) == Custom("machine-server", "1.2.3", "linux/aarch64", ("dev",))


@pytest.mark.parametrize(
    "changes",
    [
        {"program": "sh"},
        {"version": "1.2"},
        {"version": "1.2.3/../../x"},
        {"platform": "linux/x86_64"},
        {"platform": "any"},
        {"channels": ["beta"]},
        {"channels": ["dev", "dev"]},
        {"channels": "dev"},
        {"minimum": "old"},
        {"minimum": 1},
    ],
)
def test_a_target_that_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="target"):
        custom_of(PATH, {**CUSTOM, **changes})


@pytest.mark.parametrize("custom", [None, [], "x", {}, {"program": "machine-server"}])
def test_a_target_without_its_fields_is_refused(custom: object) -> None:
    with pytest.raises(ValueError, match="custom"):
        custom_of(PATH, custom)


@pytest.mark.parametrize(
    ("reported", "normal"),
    [
        ("linux/arm64", "linux/aarch64"),
        ("Linux/aarch64", "linux/aarch64"),
        ("linux/amd64", "linux/x86_64"),
        ("linux/arm32v7", "linux/armv7l"),
        ("", "/"),
    ],
)
def test_platforms(reported: str, normal: str) -> None:
    assert normal_platform(reported) == normal


def test_a_header() -> None:
    line = b'# machine-release {"program":"machine-agent","version":"1.0.0","platform":"linux/x86_64","offset":512}\n'
    assert read_header(b"#!/bin/sh\n" + line + b"exit\n\x1f\x8b") == Header("machine-agent", "1.0.0", "linux/x86_64")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n",
        b"#!/bin/sh\necho\n",
        b"#!/bin/sh\n# machine-release \n",
        b"#!/bin/sh\n# machine-release {}\n",
        b"#!/bin/sh\n# machine-release [1]\n",
        b'#!/bin/sh\n# machine-release {"program":"x","version":"1.0.0","platform":"linux/x86_64"}\n',
        b'#!/bin/sh\n# machine-release {"program":"machine-agent","version":"\xff","platform":"linux/x86_64"}\n',
        b"#!/bin/sh\n# machine-release " + b"[" * 4000,
    ],
)
def test_a_header_that_is_refused(text: bytes) -> None:
    with pytest.raises(MachineError, match="header"):
        read_header(text)
