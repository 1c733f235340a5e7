"""Each invalid value of each setting of the agent: the default applies, and the page of the machine names a remedy.

The configuration is saved in a cloud, the agent's own call fetches it, and the report is the agent's.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.control.fetch import Versions, fetch
from agent.control.report import AgentReport, ProgramReport, encode, problems_of
from agent.control.settings import SettingsState
from cloud.domain.releases.agent_report import wanted_version
from cloud.server.memory import MemoryCloud
from rpc.access.credential_types import PART_SECRET
from rpc.api.cloud_v1 import AGENTS
from schema.agent.records import Settings
from schema.errors import ConfigError
from tests.unit.cloud.pages import signed_in
from tests.unit.runtime.parts.web.client import Browser
from tests.unit.schema.agent.tables import KEYS, NETWORK_KEYS, WIFI, WINDOW_KEYS, Key, others

VALID = {"advanced_settings": {"debug": True}, "system_configuration": {"logging_journald_storage": "none"}}
FROM_CLOUD = tuple(key for key in KEYS if key.section != "version_control")  # which the agent does not receive


async def run(function: Callable[[], Any]) -> Any:
    return function()


def can_be_sent(value: Any) -> bool:
    """Return whether JSON and the published message can represent a value."""
    if isinstance(value, dict | list):
        return all(can_be_sent(item) for item in (value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or (abs(value) < 1e308 and math.isfinite(value))


class Machine:
    """A part in a cloud, the settings of its agent, and a person who looks at its page."""

    def __init__(self, cloud: MemoryCloud, part: str, folder: Path, person: Browser) -> None:
        self._cloud, self._part, self._person = cloud, part, person
        self.settings = SettingsState(folder / "defaults", folder / "stored", run)
        self.version_problems: tuple[ConfigError, ...] = ()  # problems of versions that the cloud has sent

    async def use(self, document: dict[str, Any]) -> Settings:
        """Save a configuration, and let the agent fetch it and report; return the settings in force."""
        text = json.dumps({"agent": document})
        await self._cloud.app("update_robot_part", id=self._part, name="", robot_config_json=text)
        client = self._cloud.client(self._part, PART_SECRET)
        fetched = await fetch(client, self._part, {}, Versions())
        await self.settings.apply(fetched.settings)
        self.version_problems = fetched.problems
        problems = problems_of(self.settings.problems)
        report = encode(AgentReport(1.0, ProgramReport(), ProgramReport(), problems=problems))
        await client.call(AGENTS, "", "report_agent", part_id=self._part, report_json=report)
        return self.settings.current

    async def page(self) -> str:
        return html.unescape((await self._person.get(f"/machines/{self._part}")).text)

    async def shows(self, path: str, remedy: str) -> None:
        """Raise AssertionError unless the page and the answer of the call name a problem, and nothing else."""
        (problem,) = self.settings.problems
        assert problem.path == path
        assert remedy in problem.remedy
        page = await self.page()
        assert f"<code>{path}</code>" in page
        assert (problem.remedy[:1].upper() + problem.remedy[1:]) in page
        state = await self._cloud.client().call(AGENTS, "", "get_agent_state", part_id=self._part)
        assert [entry["path"] for entry in json.loads(state["report_json"])["problems"]] == [path]


@pytest.fixture
async def rover(cloud: MemoryCloud, part: str, tmp_path: Path) -> Machine:
    return Machine(cloud, part, tmp_path, await signed_in(cloud))


@pytest.mark.parametrize("key", FROM_CLOUD, ids=lambda key: key.path)
async def test_an_invalid_value_has_no_other_effect_than_a_problem_on_the_page(rover: Machine, key: Key) -> None:
    values = [(value, remedy) for value, remedy in key.invalid if can_be_sent(value)]
    assert len(values) > 1
    for value, remedy in values:
        sections = {**VALID, key.section: {**VALID.get(key.section, {}), key.key: value}}
        settings = await rover.use(sections)
        assert key.of(settings) == key.default, value
        valid = others(settings, key)
        if (key.section, key.key) != ("advanced_settings", "debug"):
            assert valid["advanced_settings", "debug"] is True
        if key.key != "logging_journald_storage":
            assert valid["system_configuration", "logging_journald_storage"] == "none"
        await rover.shows(key.path, remedy)
    await rover.use(VALID)
    assert f"<code>{key.path}</code>" not in await rover.page()


@pytest.mark.parametrize("name", ["agent", "machine-server", "viam-server"])
async def test_an_invalid_version_is_a_problem_on_the_page_and_on_the_device(
    cloud: MemoryCloud, part: str, rover: Machine, name: str
) -> None:
    key = next(key for key in KEYS if (key.section, key.key) == ("version_control", "agent"))
    path = f"agent.version_control.{name}"
    for value, _ in key.invalid:
        if value == "http://example.com/a":  # whether it is allowed is known to the device
            continue
        settings = await rover.use({**VALID, "version_control": {name: value}})
        assert settings.advanced_settings.debug
        assert rover.settings.problems == ()
        page = await rover.page()
        assert f"<code>{path}</code>" in page
        assert 'Write a string: stable, dev, a semantic version such as "1.2.3"' in page
        version, where, problem = wanted_version({name: value}, (name,))
        assert (version, where, problem and problem.path) == ("", path, path)
        assert [sent.path for sent in rover.version_problems] == [path]
        assert "the machine keeps the version that it runs" in rover.version_problems[0].reason
        state = await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part)
        assert [entry["path"] for entry in state["problems"]] == [path]
        (agent,) = await cloud.client().call(AGENTS, "", "list_agents")
        assert agent["states"] == ["problems"]
    for value, _ in key.valid:
        await rover.use({"version_control": {name: value}})
        if value == "dev" or "://" in value:
            assert "agent.version_control" not in await rover.page()
        else:
            assert f"version {value} of " in await rover.page()
            assert "is not published for" in rover.version_problems[0].reason
        assert wanted_version({name: value}, (name,)) == (value, path, None)


@pytest.mark.parametrize("name", NETWORK_KEYS)
async def test_an_invalid_network_is_left_out_and_the_others_stay(rover: Machine, name: str) -> None:
    for value, remedy in NETWORK_KEYS[name][1]:
        settings = await rover.use({"additional_networks": {"bad": {**WIFI, name: value}, "good": WIFI}})
        assert set(settings.additional_networks) == {"good"}
        await rover.shows(f"agent.additional_networks.bad.{name}", remedy)


@pytest.mark.parametrize("name", WINDOW_KEYS)
async def test_an_invalid_window_is_a_problem_on_the_page(rover: Machine, name: str) -> None:
    for value, remedy in WINDOW_KEYS[name]:
        window = {"start": "22:00", "end": "04:00", name: value}
        await rover.use({"advanced_settings": {"maintenance_windows": [window], "debug": True}})
        assert rover.settings.current.advanced_settings.debug
        (problem,) = rover.settings.problems
        assert problem.path.startswith("agent.advanced_settings.maintenance_windows")
        await rover.shows(problem.path, remedy)


async def test_secrets_are_not_on_the_page(rover: Machine) -> None:
    await rover.use({"network_configuration": {"hotspot_password": "p\u00e4ssw\u00f6rd-of-the-hotspot"}})
    assert "of-the-hotspot" not in await rover.page()
