"""meta.json: valid files, and the errors for invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.sdk.meta import check_folder, check_offers, parse_meta

GOOD: dict[str, Any] = {
    "$schema": "https://example.com/module.schema.json",
    "module_id": "acme:smooth",
    "visibility": "public_unlisted",
    "url": "https://example.com/smooth",
    "description": "smooth readings",
    "models": [
        {
            "api": "rdk:component:sensor",
            "model": "acme:smooth:mean",
            "short_description": "the mean",
            "markdown_link": "README.md#mean",
        },
        {"api": "acme:service:own", "model": "acme:smooth:own"},
    ],
    "entrypoint": "run.sh",
    "first_run": "first_run.sh",
    "markdown_link": "README.md",
    "build": {"setup": "setup.sh", "build": "build.sh", "path": "dist/a.tar.gz", "arch": ["linux/any", "linux/arm64"]},
}


def problems(document: object) -> list[str]:
    meta, report = parse_meta(json.dumps(document).encode())
    assert (meta is None) == bool(report.problems)
    return [str(problem) for problem in report.problems]


def test_all_keys_are_read() -> None:
    meta, report = parse_meta(json.dumps(GOOD).encode())
    assert meta is not None
    assert not report.problems
    assert not report.warnings
    assert (meta.module_id, meta.name, meta.entrypoint, meta.first_run) == (
        "acme:smooth",
        "smooth",
        "run.sh",
        "first_run.sh",
    )
    assert (meta.models[0].api, meta.models[0].model) == ("rdk:component:sensor", "acme:smooth:mean")
    assert meta.build.arch == ("linux/any", "linux/arm64")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"module_id": None}, "module_id"),
        ({"module_id": "smooth"}, "module_id: 'smooth' is not a valid id: write namespace:name"),
        ({"module_id": "acme:smooth:mean"}, "is not a valid id"),
        ({"visibility": "secret"}, "visibility"),
        (
            {"entrypoint": "../run.sh"},
            "entrypoint: '../run.sh' leads out of the module: use the path of a file in the module",
        ),
        ({"first_run": "/bin/sh"}, "first_run: '/bin/sh' leads out of the module"),
        ({"models": {}}, "models"),
        ({"models": [{"api": "rdk:component:sensor"}]}, "models.0"),
        ({"models": [{"api": "sensor", "model": "acme:a:b"}]}, "models.0.api: 'sensor' is not an API"),
        ({"models": [{"api": "rdk:component:senser", "model": "acme:a:b"}]}, "did you mean 'rdk:component:sensor'"),
        ({"models": [{"api": "rdk:component:sensor", "model": "other:a:b"}]}, "use the module's own namespace"),
        ({"models": [GOOD["models"][0]] * 2}, "models.1: acme:smooth:mean of rdk:component:sensor is listed twice"),
        ({"build": {"arch": ["linux/arm65"]}}, "build.arch.0: 'linux/arm65' is not a known architecture: did you mean"),
        ({"build": {"arch": "linux/any"}}, "build.arch"),
    ],
)
def test_mistakes_are_named_with_their_place(change: dict[str, Any], words: str) -> None:
    result = problems({**GOOD, **change})
    assert len(result) == 1, result
    assert words in result[0]


@pytest.mark.parametrize("key", ["module_id", "visibility", "entrypoint"])
def test_required_keys(key: str) -> None:
    result = problems({first: value for first, value in GOOD.items() if first != key})
    assert len(result) == 1
    assert f"'{key}' is missing" in result[0]


@pytest.mark.parametrize(
    ("text", "words"), [("", "empty"), ("{", "line 1"), ("[]", "is not an object"), ("{,}", "line")]
)
def test_values_that_are_not_objects(text: str, words: str) -> None:
    meta, report = parse_meta(text.encode())
    assert meta is None
    assert words in str(report.problems[0])


def test_unknown_keys_are_warned_of() -> None:
    meta, report = parse_meta(json.dumps({**GOOD, "entry_point": "x"}).encode())
    assert meta is not None
    assert "entry_point" in str(report.warnings[0])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "api", "model", "arch"]), inner)
        ),
    )
)
def test_whatever_it_is_nothing_is_raised(value: object) -> None:
    problems(value)


def test_programs_must_be_there_and_executable(tmp_path: Path) -> None:
    meta, _ = parse_meta(json.dumps(GOOD).encode())
    assert meta is not None
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    results = [str(item) for item in check_folder(tmp_path, meta)]
    assert results == [
        f"entrypoint: run.sh is not executable: chmod +x {tmp_path / 'run.sh'}",
        "first_run: there is no file first_run.sh: correct it in meta.json",
    ]
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "first_run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "first_run.sh").chmod(0o755)
    assert not check_folder(tmp_path, meta)


def test_listed_models_must_be_offered_and_offered_models_listed() -> None:
    meta, _ = parse_meta(json.dumps(GOOD).encode())
    assert meta is not None
    assert not check_offers(meta, [(model.api, model.model) for model in meta.models])
    results = [str(offer) for offer in check_offers(meta, [("rdk:component:sensor", "acme:smooth:new")])]
    assert results == [
        "models: the module offers acme:smooth:new of rdk:component:sensor, which is not listed: add it",
        "models.0: the module does not offer acme:smooth:mean of rdk:component:sensor: remove it",
        "models.1: the module does not offer acme:smooth:own of acme:service:own: remove it",
    ]
