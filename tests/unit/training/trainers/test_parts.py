"""Division of examples, and the choice of the head."""

from __future__ import annotations

from collections import Counter

import numpy
import pytest

from training.trainers import head as heads
from training.trainers.choice import HeadCandidate, choose, held_out
from training.trainers.examples import RARE, Example, examples_of, parts
from training.trainers.report import SCORED, SCORES, Accuracies, figures, remarks

LINES = [
    '{"image_path": "/d/1.png", "binary_data_id": "1", "classification_annotations": [{"annotation_label": "a"}]}',
    '{"image_path": "/d/2.png", "classification_annotations": [{"annotation_label": "b"}, {"annotation_label": "a"}]}',
    '{"image_path": "/d/3.png", "classification_annotations": [{"annotation_label": "other"}]}',
    '{"image_path": "/d/4.png"}',
]


def test_examples() -> None:
    assert examples_of(LINES, ["a", "b"], exclusive=True) == [Example("1", "/d/1.png", ("a",))]
    assert [example.labels for example in examples_of(LINES, ["a", "b"], exclusive=False)] == [("a",), ("a", "b")]


def examples(count: int, label: str = "a") -> list[Example]:
    return [Example(f"{label}{number}", "", (label,)) for number in range(count)]


@pytest.mark.parametrize(("count", "tests"), [(1, 0), (2, 0), (3, 1), (10, 2), (100, 20)])
def test_a_fifth_of_each_label_is_for_the_test(count: int, tests: int) -> None:
    result = parts([*examples(count), *examples(50, "b")], 0, 4)
    assert result[:count].count(-1) == tests
    folds = Counter(part for part in result[:count] if part >= 0)
    assert max(folds.values()) - min(folds.values() if len(folds) == 4 else [0]) <= 1


def test_the_division_depends_on_the_seed_and_not_on_the_order() -> None:
    some = examples(30)
    first = dict(zip((example.id for example in some), parts(some, 1, 4), strict=True))
    turned = some[::-1]
    assert dict(zip((example.id for example in turned), parts(turned, 1, 4), strict=True)) == first
    assert parts(some, 2, 4) != parts(some, 1, 4)


def test_rare_combinations_of_labels_are_divided_together() -> None:
    """Otherwise a picture with its own combination is never in the test, and always in the first fold."""
    many = [Example(f"m{number}", "", ("a", "b")) for number in range(40)]
    rare = [Example(f"r{number}", "", (f"{number}",)) for number in range(40)]
    result = parts([*many, *rare], 0, 4)
    for own in (result[:40], result[40:]):
        assert Counter(own) == {-1: 8, 0: 8, 1: 8, 2: 8, 3: 8}


def test_the_head_finds_the_minimum() -> None:
    chance = numpy.random.default_rng(0)
    features = chance.normal(size=(60, 5))
    targets = numpy.eye(3)[numpy.argmax(features[:, :3], axis=1)]
    head = heads.fit(numpy, heads.Examples(features, targets, [5], True), 1e-6)
    predicted = heads.probabilities(numpy, features, head, exclusive=True)
    assert (predicted.argmax(axis=1) == targets.argmax(axis=1)).mean() > 0.95
    assert predicted.sum(axis=1) == pytest.approx(numpy.ones(60))


def test_noise_is_regularized_more_than_a_clear_difference() -> None:
    chance = numpy.random.default_rng(0)
    targets = numpy.eye(2)[numpy.arange(80) % 2]
    folds = numpy.arange(80) // 2 % 4
    noise = chance.normal(size=(80, 200))
    clear = noise + 20 * targets[:, :1]
    strengths = [
        choose(numpy, heads.Examples(features, targets, [200], True), folds).candidate.strength
        for features in (noise, clear)
    ]
    assert strengths[0] > strengths[1]


def test_rare_labels_count_as_much_as_frequent_ones() -> None:
    features = numpy.array([[0.0]] * 95 + [[1.0]] * 5)
    targets = numpy.eye(2)[[0] * 95 + [1] * 5]
    head = heads.fit(numpy, heads.Examples(features, targets, [1], True), 10.0)
    predicted = heads.probabilities(numpy, numpy.array([[0.5]]), head, exclusive=True)
    assert predicted[0] == pytest.approx([0.5, 0.5], abs=0.15)


def test_features_that_never_change() -> None:
    features = numpy.hstack([numpy.ones((20, 3)), numpy.arange(20)[:, None]])
    targets = numpy.eye(2)[(numpy.arange(20) > 9).astype(int)]
    head = heads.fit(numpy, heads.Examples(features, targets, [4], True), 0.01)
    assert numpy.isfinite(head.weights).all()


def weight_of_the_signal(groups: list[int]) -> float:
    """Return the smallest weight of the only feature that says something, the last of 100."""
    chance = numpy.random.default_rng(0)
    targets = numpy.eye(2)[numpy.arange(40) % 2]
    signal = targets[:, :1] + chance.normal(scale=0.3, size=(40, 1))
    features = numpy.hstack([chance.normal(size=(40, 99)), signal])
    return float(abs(heads.fit(numpy, heads.Examples(features, targets, groups, True), 0.1).weights[-1]).min())


def test_a_small_map_does_not_count_less_because_it_is_small() -> None:
    assert weight_of_the_signal([99, 1]) > 1.5 * weight_of_the_signal([100])


def test_the_maps_count_by_their_shares() -> None:
    """The weights of equal features are in the proportion of the shares; the fourth map counts as the third."""
    targets = numpy.eye(2)[numpy.arange(40) % 2]
    features = numpy.repeat(targets[:, :1], 4, axis=1)
    weights = heads.fit(numpy, heads.Examples(features, targets, [1, 1, 1, 1], True), 0.1).weights[:, 0]
    assert weights / weights[-1] == pytest.approx([5, 4, 1, 1])


def test_held_out_predictions() -> None:
    """Labels that are drawn by chance can be learned by heart, but not predicted."""
    features = numpy.random.default_rng(0).normal(size=(80, 200))
    targets = numpy.eye(2)[numpy.random.default_rng(1).integers(0, 2, 80)]
    data = heads.Examples(features, targets, [200], True)
    predicted = held_out(numpy, data, numpy.arange(80) % 4, HeadCandidate(0.01))
    assert 0.2 < (predicted.argmax(axis=1) == targets.argmax(axis=1)).mean() < 0.8


@pytest.mark.parametrize(
    ("accuracy", "test_accuracy", "pictures", "expected"),
    [
        (0.95, 0.94, 200, ""),
        (0.52, 0.5, 200, "hardly better than always answering"),
        (0.72, 0.7, 200, "the backbone is weak"),
        (0.95, 0.6, 200, "lower than"),
        (0.95, 0.9, 10, "only 10 pictures"),
    ],
)
def test_remarks(accuracy: float, test_accuracy: float, pictures: int, expected: str) -> None:
    lines = remarks(Accuracies(accuracy, 0.5, test_accuracy, pictures))
    assert len(lines) == bool(expected)
    assert expected in "".join(lines)


@pytest.mark.parametrize(("labels", "rows"), [(["a", "b"], SCORED), ([f"{number}" for number in range(200)], 500)])
def test_the_probabilities_in_a_report_are_limited(labels: list[str], rows: int) -> None:
    share = [1 / len(labels)] * len(labels)
    result = figures(examples(3000, labels[0]), [share] * 3000, labels, exclusive=False)["scores"]
    assert len(result) == rows == min(SCORED, SCORES // len(labels))
    first = result[0]["id"]
    assert result[0] == {"id": first, "labels": [labels[0]], "probabilities": [round(value, 4) for value in share]}


def test_a_combination_that_is_not_rare_has_a_test_of_its_own() -> None:
    for seed in range(20):
        result = parts([*examples(RARE), *examples(RARE, "b")], seed, 4)
        assert (result[:RARE].count(-1), result[RARE:].count(-1)) == (1, 1)
