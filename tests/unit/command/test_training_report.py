"""`machine cloud train report` for people."""

from __future__ import annotations

import json
from typing import Any

from command.cloud.training.models import lines_of
from training.jobs.report import read_report


def shown(**fields: Any) -> list[str]:
    report = read_report(json.dumps(fields).encode())
    assert report is not None
    return "\n".join(lines_of(report)).splitlines()


def test_a_classifier() -> None:
    mistake = {"id": "a1", "labels": ["ok"], "predicted": ["bad"], "probabilities": {"ok": 0.1, "bad": 0.9}}
    test = {
        "pictures": 16,
        "accuracy": 0.9375,
        "labels": {"ok": {"pictures": 8, "precision": 1, "recall": 0.875}},
        "worst_mistakes": [mistake],
    }
    lines = shown(pictures={"training": ["x"] * 62}, cross_validation={"accuracy": 0.5}, test=test, remarks=["few"])
    assert lines == [
        "62 pictures for training, 16 for the test",
        "accuracy: 94 %",
        "cross-validated accuracy: 50 %",
        "",
        "LABEL  PICTURES  PRECISION  RECALL",
        "ok     8         100 %      88 %",
        "",
        "WORST MISTAKES  LABELS  MODEL  SCORE",
        "a1              ok      bad    0.90",
        "",
        "remark: few",
    ]


def test_a_detector() -> None:
    test = {"pictures": 4, "mAP50": 0.8, "mAP75": 0.25, "labels": {"nut": {"boxes": 9, "AP50": 0.8, "AP75": None}}}
    lines = shown(model_type="object_detection", test=test)
    assert lines[1:] == ["mAP50: 80 %", "mAP75: 25 %", "", "LABEL  BOXES  AP50  AP75", "nut    9      80 %  -"]


def test_control_characters_of_a_script_are_not_printed() -> None:
    lines = shown(test={"pictures": 1, "labels": {"a\x1b[2J": {"pictures": 1}}}, remarks=["b\x1b[2J"])
    assert not any("\x1b" in line for line in lines)


def test_a_report_without_figures() -> None:
    assert shown() == ["0 pictures for training, 0 for the test"]
