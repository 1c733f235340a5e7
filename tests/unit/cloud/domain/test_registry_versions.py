"""Selection of a module version, and of the file for a machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.registry import versions
from schema.errors import MachineError

UPLOADED = ["1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "1.2.1", "0.9.0"]


@pytest.mark.parametrize(
    ("expected", "chosen"),
    [
        ("1.2.0", "1.2.0"),
        ("latest", "1.10.0"),
        ("", "1.10.0"),
        ("latest-with-prerelease", "2.0.0-rc.1"),
        ("1", "1.10.0"),
        ("1.2", "1.2.1"),
        ("0", "0.9.0"),
        ("2", None),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("9.9.9", None),
        ("stable", None),
        ("1.2.x", None),
    ],
)
def test_meanings_of_versions(expected: str, chosen: str | None) -> None:
    assert versions.chosen(expected, UPLOADED) == chosen


def test_versions_that_are_not_semantic_are_ordered_by_upload() -> None:
    assert versions.chosen("latest", ["2026-02", "2026-01"]) == "2026-01"
    assert versions.chosen("2026-02", ["2026-02", "2026-01"]) == "2026-02"
    assert versions.chosen("1", ["2026-02", "1.0.0"]) is None
    assert versions.chosen("latest", []) is None


# the example of the specification: semver.org, section 11
PRECEDENCE = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
              "1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1"]  # fmt: skip


@given(st.permutations(PRECEDENCE))
def test_the_precedence_of_the_specification(shuffled: list[str]) -> None:
    assert versions.newest_first(shuffled) == PRECEDENCE[::-1]


@pytest.mark.parametrize("text", ["1", "1.2", "01.2.3", "1.2.3-", "v1.2.3", "1.2.3 ", "", "latest", "a/b", "1.2.3\n"])
def test_invalid_versions_of_modules_are_refused(text: str) -> None:
    with pytest.raises(MachineError, match="is not a valid version"):
        versions.checked_version(text, semantic=True)


@pytest.mark.parametrize("text", ["", "latest", "latest-with-prerelease", "../x", "a b", "-x", "x" * 101])
def test_invalid_versions_are_refused(text: str) -> None:
    with pytest.raises(MachineError, match="is not a valid version"):
        versions.checked_version(text, semantic=False)


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("", "any"),
        ("any", "any"),
        ("any/any", "any"),
        ("linux/x86_64", "linux/amd64"),
        ("Linux/aarch64", "linux/arm64"),
        ("linux/armv7l", "linux/arm32v7"),
        ("linux/any", "linux/any"),
    ],
)
def test_platforms_are_stored_as_registries_write_them(given_text: str, kept: str) -> None:
    assert versions.checked_platform(given_text) == kept


@pytest.mark.parametrize("text", ["linux", "linux/", "beos/amd64", "linux/amd64/x", "linux/vax"])
def test_invalid_platforms_are_refused(text: str) -> None:
    with pytest.raises(MachineError, match="is not a valid platform"):
        versions.checked_platform(text)


def best(machine: str, has: set[str], *there: tuple[str, str]) -> tuple[str, str] | None:
    values = {place: versions.fitness(*place, machine, has) for place in there}
    usable = {place: fit for place, fit in values.items() if fit is not None}
    return max(usable, key=lambda place: usable[place], default=None)


ALL = (
    ("any", ""),
    ("linux/any", ""),
    ("linux/arm64", ""),
    ("linux/arm64", "cuda:true,jetpack:6"),
    ("darwin/arm64", ""),
)


@pytest.mark.parametrize(
    ("machine", "has", "gets"),
    [
        ("linux/aarch64", set(), ("linux/arm64", "")),
        ("linux/arm64", {"cuda:true"}, ("linux/arm64", "")),
        ("linux/arm64", {"cuda:true", "jetpack:6", "pi:5"}, ("linux/arm64", "cuda:true,jetpack:6")),
        ("linux/amd64", set(), ("linux/any", "")),
        ("windows/amd64", set(), ("any", "")),
        ("", set(), ("any", "")),
        ("linux", set(), ("any", "")),
    ],
)
def test_the_most_specific_file_is_selected(machine: str, has: set[str], gets: tuple[str, str]) -> None:
    assert best(machine, has, *ALL) == gets


def test_files_for_another_platform_are_not_selected() -> None:
    assert best("linux/amd64", set(), ("linux/arm64", ""), ("darwin/arm64", ""), ("any", "gpu:1")) is None


def test_tags_are_words() -> None:
    assert versions.checked_tags(["b:2", "a:1", "b:2"]) == "a:1,b:2"
    with pytest.raises(MachineError, match="is not a valid platform tag"):
        versions.checked_tags(["a,b"])
