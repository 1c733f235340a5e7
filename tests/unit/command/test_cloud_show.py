"""Display of the cloud's answers for users."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from click.testing import CliRunner

from command.cloud.configurations.config import config
from command.cloud.show import fleet, history, parts_of, saves


def revision(number: int, rpm: Any, author: str = "guard") -> dict[str, Any]:
    attributes = {"max_rpm": rpm, "password": f"secret {number}"}
    motor = {"name": "a", "api": "rdk:component:motor", "model": "fake", "attributes": attributes}
    return {
        "revision": number,
        "saved": f"2026-01-0{number}T00:00:00+00:00",
        "author": author,
        "author_type": "api-key",
        "author_id": "k",
        "document": {"components": [motor]},
    }


def test_each_save_has_its_number_its_author_and_what_it_changed() -> None:
    result = saves([revision(3, 150), revision(2, 200), revision(1, 60, author="the\x1bmachine")])
    assert [item["revision"] for item in result] == [3, 2, 1]
    assert result[2]["changes"] is None, "what came before is not known"
    assert "document" not in result[0]
    lines = list(history(result))
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split("  ")[0] for head in heads] == ["3", "2", "1"]
    assert [head.split("  by ")[1] for head in heads] == ["guard", "guard", "the machine"]
    assert any("200 -> 150" in line for line in lines[1 : lines.index(heads[1])])
    assert any("60 -> 200" in line for line in lines[lines.index(heads[1]) : lines.index(heads[2])])
    assert lines[-1] == heads[2]
    assert "secret" not in "".join(lines)
    masked = [{**revision(2, 60), "document": {}}, {**revision(1, 60), "document": {}}]
    assert saves(masked)[0]["changes"] == ["(in secrets, which this key must not read)"]


def test_diff_refuses_wrong_combinations_of_arguments() -> None:
    for words, said in ((["-", "--to", "2"], "not with both"), ([], "give FILE"), (["--to", "0"], "range")):
        done = CliRunner().invoke(config, ["diff", "rover", *words], input="{}")
        assert done.exit_code == 2
        assert said in done.output


def test_the_fleet_table_shows_the_version_of_each_part() -> None:
    part = {"part_name": "rover-main", "part_id": "p", "is_main_part": True, "online_state": "ONLINE"}
    values = {**part, "part_id": "q", "viam_server_version": {"minor": "0.9.1"}}
    machines = [{"machine_name": name, "part_summaries": [first]} for name, first in (("a", part), ("b", values))]
    result = parts_of([{"location_name": "lab", "machine_summaries": machines}])
    assert [item.version for item in result] == ["", "0.9.1"]
    head, *_, last = fleet(result, datetime.now(UTC))
    assert "VERSION" in head
    assert "0.9.1" in last
