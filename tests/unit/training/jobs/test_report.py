"""Reports of trainers, which programs of tenants write, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from training.jobs.report import MAX_SIZE, Mistake, Report, encode_report, read_report

MISTAKE = {"id": "a", "labels": ["ok"], "predicted": ["bad"], "probabilities": {"ok": 0.1, "bad": 0.9}}


def read(**content: Any) -> Report:
    report = read_report(json.dumps(content).encode())
    assert report is not None
    return report


def test_everything_is_optional_and_unknown_fields_are_ignored() -> None:
    assert read() == Report()
    report = read(format=1, labels=["ok"], future={"x": 1}, test={"accuracy": None, "labels": {"ok": {"more": 1}}})
    assert report.labels == ["ok"]
    assert report.test.labels["ok"].pictures == 0
    assert read_report(encode_report(report).encode()) == report


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no", b"[]", b"null", b"\xff",
        b'{"labels": "ok"}', b'{"test": {"accuracy": "high"}}', b'{"remarks": [1]}',
        b"[" * 100_000, b'{"labels": ["' + b"x" * MAX_SIZE + b'"]}',
    ],
)  # fmt: skip
def test_other_content_is_rejected(content: bytes) -> None:
    assert read_report(content) is None


def test_remarks_are_printable_and_short() -> None:
    (remark,) = read(remarks=["a\x00\x1b" + "b" * 10_000]).remarks
    assert remark.isprintable()
    assert len(remark) <= 4000


@pytest.mark.parametrize(
    ("labels", "predicted", "probabilities", "score"),
    [
        (["ok"], ["bad"], {"ok": 0.1, "bad": 0.9}, 0.9),
        (["ok"], [], {"ok": 0.2, "bad": 0.4}, 0.8),
        (["ok", "bad"], ["ok"], {"ok": 0.9, "bad": 0.3}, 0.7),
        ([], ["ok"], {"ok": 7.0}, 1.0),
        (["ok"], ["ok"], {"ok": 0.9}, 0.0),
        (["ok"], ["bad"], {}, 0.0),
    ],
)
def test_the_score_says_how_sure_the_model_is_of_the_difference(
    labels: list[str], predicted: list[str], probabilities: dict[str, float], score: float
) -> None:
    assert Mistake("a", labels, predicted, probabilities).score == pytest.approx(score)


def test_pictures_are_contradicted_once_and_only_by_sure_mistakes() -> None:
    unsure = {**MISTAKE, "id": "b", "probabilities": {"ok": 0.45, "bad": 0.55}}
    other = {**MISTAKE, "id": "c"}
    report = read(test={"worst_mistakes": [MISTAKE, unsure]}, cross_validation={"worst_mistakes": [other, MISTAKE]})
    assert [mistake.id for mistake in report.contradicted()] == ["a", "c"]


def test_a_report_of_a_detector() -> None:
    labels = {"cup": {"boxes": 3, "AP50": 0.5, "AP75": None}}
    mistakes = [
        {"id": "a", "labels": ["cup"], "predicted": ["cup"], "missed": 1, "wrong": 0.7},
        {"id": "b", "wrong": 0},
    ]
    test = {"pictures": 2, "mAP50": 0.5, "mAP75": None, "labels": labels, "worst_mistakes": mistakes}
    report = read(model_type="object_detection", labels=["cup"], test=test)
    assert report.detects
    assert (report.test.map50, report.test.map75, report.test.labels["cup"].ap50) == (0.5, None, 0.5)
    assert [(mistake.id, mistake.missed, mistake.score) for mistake in report.test.worst_mistakes] == [
        ("a", 1, 0.7),
        ("b", 0, 0.0),
    ]
    assert [mistake.id for mistake in report.contradicted()] == ["a"]
    assert read_report(encode_report(report).encode()) == report
