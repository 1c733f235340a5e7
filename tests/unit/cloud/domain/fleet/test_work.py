"""Work on many machines: what its arguments must be."""

from __future__ import annotations

import pytest

from cloud.domain.fleet.work import Work, WorkKind, checked_work, described
from schema.errors import MachineError


@pytest.mark.parametrize(
    "work",
    [
        Work(WorkKind.ADD_FRAGMENT, fragment_id="f"),
        Work(WorkKind.REMOVE_FRAGMENT, fragment_id="f"),
        Work(WorkKind.SET_VALUE, path="a.b", value=0),
        Work(WorkKind.REMOVE_VALUE, path="a.b"),
        Work(WorkKind.PIN_VERSION, program="machine-server", version="1.2.3"),
        Work(WorkKind.ADD_TAGS, tags=("lab",)),
        Work(WorkKind.REMOVE_TAGS, tags=("lab",)),
        Work(WorkKind.MOVE, location_id="l"),
        Work(WorkKind.RESTART),
    ],
)
def test_work_with_all_its_arguments(work: Work) -> None:
    assert checked_work(work) is work


@pytest.mark.parametrize(
    ("work", "missing"),
    [
        (Work(WorkKind.ADD_FRAGMENT), "a fragment is missing"),
        (Work(WorkKind.REMOVE_FRAGMENT), "a fragment is missing"),
        (Work(WorkKind.SET_VALUE, value=1), "the path is missing"),
        (Work(WorkKind.REMOVE_VALUE), "the path is missing"),
        (Work(WorkKind.SET_VALUE, path="a.b"), "the value is missing"),
        (Work(WorkKind.PIN_VERSION, program="bash", version="1.2.3"), "'bash' is not a program"),
        (Work(WorkKind.PIN_VERSION, program="machine-server", version="newest"), "'newest' is not a version"),
        (Work(WorkKind.ADD_TAGS), "the tags are missing"),
        (Work(WorkKind.REMOVE_TAGS), "the tags are missing"),
        (Work(WorkKind.MOVE), "the location is missing"),
    ],
)
def test_work_without_an_argument(work: Work, missing: str) -> None:
    with pytest.raises(MachineError, match=missing):
        checked_work(work)


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("components.arm.attributes.speed", 3, "3"),
        ("components.arm.attributes.password", "hush", "***"),
        ("components.arm.attributes.password_required", True, "***"),
        ("components.arm.attributes", {"password": "hush"}, '{"password": "***"}'),
        ("modules.m.env.FOO", "hush", "***"),
        ("modules.m.env", {"FOO": "hush"}, '{"FOO": "***"}'),
        ("fragments.f.variables.pin", "hush", "***"),
        ("fragments.f.variables", {"pin": "hush"}, '{"pin": "***"}'),
    ],
)
def test_descriptions_have_no_secrets(path: str, value: object, shown: str) -> None:
    assert described(Work(WorkKind.SET_VALUE, path=path, value=value)) == f"set {path} to {shown}"
