import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.system.managed_files import (
    CurrentFile,
    Manifest,
    WantedFile,
    manifest_text,
    parse_manifest,
    plan_files,
    sha256,
)
from schema.errors import ErrorKind, MachineError

PATH = "etc/a.conf"
WANTED = WantedFile(PATH, "new")
OWN = Manifest({PATH: [sha256("old"), sha256("new")]})
NO_MANIFEST = Manifest()


def current(text: str, mode: int = 0o644) -> dict[str, CurrentFile]:
    return {PATH: CurrentFile(sha256(text), mode)}


SPECIAL = {PATH: CurrentFile()}


@pytest.mark.parametrize(
    ("wanted", "manifest", "on_disk", "action"),
    [
        (True, NO_MANIFEST, {}, "write"),
        (True, OWN, {}, "write"),
        (True, OWN, current("old"), "write"),
        (True, OWN, current("new"), "equal"),
        (True, OWN, current("new", 0o600), "write"),
        (True, OWN, current("user's"), "problem: was changed since"),
        (True, OWN, SPECIAL, "problem: is not a readable file"),
        (True, NO_MANIFEST, current("new"), "equal"),
        (True, NO_MANIFEST, current("new", 0o600), "equal"),
        (True, NO_MANIFEST, current("user's"), "problem: exists, but"),
        (True, NO_MANIFEST, SPECIAL, "problem: is not a readable file"),
        (False, OWN, {}, "forget"),
        (False, OWN, current("old"), "remove"),
        (False, OWN, current("new", 0o600), "remove"),
        (False, OWN, current("user's"), "problem: is no longer needed"),
        (False, OWN, SPECIAL, "problem: is no longer needed"),
        (False, NO_MANIFEST, current("user's"), "nothing"),
    ],
)
def test_plan(wanted: bool, manifest: Manifest, on_disk: dict[str, CurrentFile], action: str) -> None:
    plan = plan_files([WANTED] if wanted else [], manifest, on_disk)
    assert [file.path for file in plan.write] == ([PATH] if action == "write" else [])
    assert list(plan.equal) == ([PATH] if action == "equal" else [])
    assert list(plan.remove) == ([PATH] if action == "remove" else [])
    assert list(plan.forget) == ([PATH] if action == "forget" else [])
    kind, _, message = action.partition(": ")
    assert list(plan.problems) == ([PATH] if kind == "problem" else [])
    for problem in plan.problems.values():
        assert message in str(problem)
        assert problem.kind is ErrorKind.PRECONDITION
        assert problem.remedy


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../../x", "a//b", "./x", "a/", "a\0b"])
def test_a_path_stays_below_the_root(path: str) -> None:
    with pytest.raises(MachineError, match="not a path below the root"):
        WantedFile(path, "")
    with pytest.raises(MachineError, match="damaged"):
        parse_manifest(manifest_text(Manifest({path: []})))


@given(
    st.dictionaries(st.text(alphabet="abc", min_size=1), st.lists(st.text())),
    st.lists(st.text(alphabet="abc", min_size=1)),
)
def test_manifest_round_trip(files: dict[str, list[str]], folders: list[str]) -> None:
    manifest = Manifest(files, folders)
    assert parse_manifest(manifest_text(manifest)) == manifest


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"files": 1}', b"[" * 5000, b'{"files": {"a": ["x"]', b"\xff"])
def test_a_damaged_manifest_is_an_error_with_a_remedy(data: bytes) -> None:
    with pytest.raises(MachineError, match="damaged") as caught:
        parse_manifest(data)
    assert caught.value.remedy


@given(st.binary())
def test_any_manifest_is_decoded_or_rejected(data: bytes) -> None:
    with contextlib.suppress(MachineError):
        parse_manifest(data)


def test_a_missing_manifest_is_empty() -> None:
    assert parse_manifest(None) == Manifest()
