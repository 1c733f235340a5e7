"""Insertion of discovered resources into configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud.editing.insertion import LONGEST, MOST, resources_in, with_resources
from schema.errors import MachineError

CAMERA: dict[str, Any] = {
    "name": "camera",
    "api": "rdk:component:camera",
    "model": "webcam",
    "attributes": {"video_path": "/dev/video0"},
}


def test_resources_go_to_their_sections() -> None:
    service = {"name": "finder", "api": "rdk:service:discovery", "model": "usb", "attributes": {}}
    document = {"components": [{"name": "left"}], "network": {"bind_address": ":80"}}
    added = with_resources(document, [CAMERA, service])
    assert added["components"] == [{"name": "left"}, CAMERA]
    assert added["services"] == [service]
    assert added["network"] == document["network"]
    assert document == {"components": [{"name": "left"}], "network": {"bind_address": ":80"}}


def test_a_taken_name_gets_a_number_and_a_known_device_is_left_out() -> None:
    other = {**CAMERA, "attributes": {"video_path": "/dev/video1"}}
    document = {"components": [{**CAMERA, "name": "front"}, {"name": "camera"}, {"name": "camera-2"}, "odd"]}
    added = with_resources(document, [CAMERA, other, other])
    assert [each["name"] for each in added["components"] if isinstance(each, dict)] == [
        "front",
        "camera",
        "camera-2",
        "camera-3",
    ]


def test_a_document_whose_section_is_odd_is_refused() -> None:
    with pytest.raises(MachineError, match="components is not a list: correct it"):
        with_resources({"components": {}}, [CAMERA])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[]",
        "[1]",
        "[" * 100_000,
        json.dumps([{**CAMERA, "attributes": {"a": "x" * LONGEST}}]),
        json.dumps([{**CAMERA, "name": ""}]),
        json.dumps([{**CAMERA, "model": 1}]),
        json.dumps([{**CAMERA, "attributes": [1]}]),
        json.dumps([CAMERA] * (MOST + 1)),
    ],
)
def test_other_than_a_list_of_resources_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match=r"the resources are (not|longer)"):
        resources_in(text)


def test_only_known_fields_are_taken() -> None:
    assert resources_in(json.dumps([{**CAMERA, "depends_on": ["x"], "attributes": None}])) == [
        {**CAMERA, "attributes": {}}
    ]
