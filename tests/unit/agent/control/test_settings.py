"""The settings in force: both files, answers of the cloud, and what happens when files are missing or damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from agent.control.settings import MAX_BYTES, SettingsState


async def run(function: Callable[[], Any]) -> Any:
    return function()


@pytest.fixture
def state(tmp_path: Path) -> SettingsState:
    return SettingsState(tmp_path / "defaults.json", tmp_path / "settings.json", run)


async def test_without_files_the_built_in_defaults_apply(state: SettingsState) -> None:
    await state.load()
    assert state.current.advanced_settings.machine_server_start_timeout == 600
    assert state.problems == ()


async def test_the_cloud_replaces_the_defaults_file_and_survives_a_restart(
    state: SettingsState, tmp_path: Path
) -> None:
    (tmp_path / "defaults.json").write_text(
        json.dumps({"advanced_settings": {"debug": True, "viam_server_start_timeout_minutes": 3}})
    )
    await state.load()
    assert (state.current.advanced_settings.debug, state.current.advanced_settings.machine_server_start_timeout) == (
        True,
        180,
    )
    assert await state.apply({"advanced_settings": {"debug": False}})
    again = SettingsState(tmp_path / "defaults.json", tmp_path / "settings.json", run)
    await again.load()
    assert again.current == state.current
    assert (again.current.advanced_settings.debug, again.current.advanced_settings.machine_server_start_timeout) == (
        False,
        180,
    )


async def test_the_same_answer_changes_nothing(state: SettingsState) -> None:
    answer = {"advanced_settings": {"debug": True}}
    assert await state.apply(answer)
    before = state.current
    assert not await state.apply(dict(answer))
    assert state.current is before


async def test_an_invalid_value_keeps_its_default_and_is_reported(state: SettingsState) -> None:
    await state.apply({"advanced_settings": {"debug": "perhaps", "disable_viam_server": True}})
    assert (state.current.advanced_settings.debug, state.current.advanced_settings.disable_machine_server) == (
        False,
        True,
    )
    assert [problem.path for problem in state.problems] == ["agent.advanced_settings.debug"]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b" " * (MAX_BYTES + 1)], ids=range(4))
async def test_a_file_that_cannot_be_used_is_named_and_the_rest_applies(
    state: SettingsState, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "defaults.json").write_bytes(content)
    (tmp_path / "settings.json").write_text('{"advanced_settings": {"debug": true}}')
    await state.load()
    assert state.current.advanced_settings.debug
    assert [problem.path for problem in state.problems] == [str(tmp_path / "defaults.json")]
    await state.apply({})
    assert [problem.path for problem in state.problems] == [str(tmp_path / "defaults.json")]


async def test_a_damaged_answer_is_replaced_by_the_next_one(state: SettingsState, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{")
    await state.load()
    assert [problem.path for problem in state.problems] == [str(tmp_path / "settings.json")]
    await state.apply({"advanced_settings": {"debug": True}})
    assert state.problems == ()


@pytest.mark.parametrize(("consent", "version"), [(True, "http://a.example/x"), (False, "stable"), (None, "stable")])
async def test_only_the_defaults_file_can_allow_http(
    state: SettingsState, tmp_path: Path, consent: bool | None, version: str
) -> None:
    (tmp_path / "defaults.json").write_text(json.dumps({} if consent is None else {"allow_http": consent}))
    await state.load()
    await state.apply({"version_control": {"machine-server": "http://a.example/x"}, "allow_http": True})
    assert state.current.version_control.machine_server == version
    assert state.allow_http == bool(consent)
    assert "agent.allow_http" in [problem.path for problem in state.problems]


@pytest.mark.parametrize(("value", "trusted"), [(True, True), (False, False), ("yes", False), (None, False)])
async def test_only_the_defaults_file_can_trust_the_first_root(
    state: SettingsState, tmp_path: Path, value: object, trusted: bool
) -> None:
    (tmp_path / "defaults.json").write_text(json.dumps({} if value is None else {"trust_first_root": value}))
    await state.load()
    await state.apply({"trust_first_root": True})
    assert state.trust_first_root == trusted
    paths = [problem.path for problem in state.problems]
    assert "agent.trust_first_root" in paths
    assert ("defaults.trust_first_root" in paths) == (value == "yes")


async def test_settings_that_cannot_be_stored_are_used_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    state = SettingsState(tmp_path / "defaults.json", tmp_path / "file" / "settings.json", run)
    with pytest.raises(FileExistsError):
        await state.apply({"advanced_settings": {"debug": True}})
    assert state.current.advanced_settings.debug


async def test_changes_are_yielded_now_and_when_they_come(state: SettingsState) -> None:
    seen: list[bool] = []

    async def follow() -> None:
        async for settings in state.changes():
            seen.append(settings.advanced_settings.debug)  # noqa: PERF401 - read while it grows

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await trio.testing.wait_all_tasks_blocked()
        for debug in (True, False):
            await state.apply({"advanced_settings": {"debug": debug}})
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert seen == [False, True, False]
