"""Semantic versions and the forms of `version_control`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.versions import SemanticVersion, VersionForm, version_form

parse = SemanticVersion.parse

ASCENDING = (
    "0.0.0-0", "0.0.0", "0.0.1", "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
    "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1-dev.5", "1.0.1-pr.7.5f2c", "1.0.1", "2.0.0--",
    "2.0.0-a",
    "2.0.0", "10.0.0",
)  # fmt: skip
WRONG = (
    "", "1", "1.2", "1.2.3.4", "01.2.3", "1.02.3", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3+a_b", "v1.2.3",
    " 1.2.3",
    "1.2.3\n", "-1.2.3", "1.2.٣", "1.2.3-ä", "stable", "1." + "2" * 300 + ".3",
)  # fmt: skip


@pytest.mark.parametrize(("low", "high"), list(itertools.combinations(ASCENDING, 2)))
def test_precedence(low: str, high: str) -> None:
    assert parse(low) < parse(high)
    assert parse(high) > parse(low)
    assert parse(low) <= parse(high) != parse(low)


@pytest.mark.parametrize("text", [*ASCENDING, "1.2.3+5f2c", "1.2.3-rc.1+a.01.-"])
def test_the_text_of_a_version(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(text) == parse(text)


@pytest.mark.parametrize("text", WRONG)
def test_other_texts_are_not_versions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a semantic version"):
        parse(text)


def test_build_metadata_has_no_precedence() -> None:
    first, second = parse("1.2.3+a"), parse("1.2.3+b")
    assert first == second
    assert hash(first) == hash(second)
    assert first <= second <= first
    assert not first < second
    assert (first.build, second.build) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("stable", VersionForm.STABLE),
        ("dev", VersionForm.DEV),
        ("1.2.3-rc.1", VersionForm.SEMANTIC),
        ("https://example.com:8443/a?b=c", VersionForm.HTTPS),
        ("https://[::1]/a", VersionForm.HTTPS),
        ("HTTP://example.com/a", VersionForm.HTTP),
        ("file:///srv/a", VersionForm.FILE),
        ("file://localhost/srv/a", VersionForm.FILE),
        *((text, None) for text in ("semantic", "https", "Stable", "latest", "https://", "https:/a", "https://a b/c")),
        *((text, None) for text in ("https://a:99999/", "https://a:x/", "https://[/", "https:///a", "ftp://a/b")),
        *((text, None) for text in ("file:///srv/a?b", "file:///srv/a#b", "file:///srv/a\n", "ht\ttps://a/b")),
        *((text, None) for text in ("file://", "file:a", "file:///", "file:///srv/", "file://host/a", "//a/b")),
    ],
)
def test_forms(text: str, form: VersionForm | None) -> None:
    assert version_form(text) is form


@given(st.text())
def test_no_text_raises(text: str) -> None:
    for candidate in (text, f"https://{text}", f"file:///{text}", f"1.2.3-{text}"):
        version_form(candidate)
