"""`machine check` reports every mistake of a file at once, for users and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command.check import Checked, check, human, main_check
from engine.registry import Registry
from engine.resource import Attributes, Component
from schema.names import API, Model


class Config(Attributes, frozen=True, kw_only=True):
    board: str
    max_rpm: float = 60

    def requires(self) -> tuple[str, ...]:
        return (self.board,)


class Motor(Component):
    API = API.parse("rdk:component:motor")
    Config = Config


class Board(Component):
    API = API.parse("rdk:component:board")


CLASSES = Registry({})
CLASSES.add(Motor.API, Model.parse("gpio"), Motor)
CLASSES.add(Board.API, Model.parse("pi"), Board)

BOARD = {"name": "pi", "type": "board", "model": "pi"}


def motor(name: str = "left", model: str = "gpio", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "motor", "model": model, "attributes": {"board": "pi"}, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


def checked(path: Path, **parts: Any) -> Checked:
    path.write_text(json.dumps(parts))
    return check(path, CLASSES, {"HOME": "/"})


def texts(result: Checked) -> list[str]:
    return [f"E {problem}" for problem in result.problems] + [f"W {warning}" for warning in result.warnings]


def test_a_good_file(path: Path) -> None:
    result = checked(path, components=[BOARD, motor(), motor("right", depends_on=["left", "rdk:component:board/pi"])])
    assert (texts(result), result.resources) == ([], 3)


@pytest.mark.parametrize(
    ("parts", "finding"),
    [
        (
            {"components": [BOARD, motor(model="gpoi")]},
            "E components.1.model: no model rdk:builtin:gpoi of rdk:component:motor is known: did you mean 'gpio'?",
        ),
        (
            {"components": [BOARD, motor(attributes={"board": "pi", "max_rpm": "60"})]},
            'E components.1.attributes.max_rpm: must be a number, not "60": write 60 without quotes',
        ),
        (
            {"components": [BOARD, motor(attributes={"board": "pie"})]},
            "E components.1.attributes: no resource 'pie' is configured: did you mean 'pi'?",
        ),
        (
            {"components": [BOARD, motor(depends_on=["rigth"]), motor("right")]},
            "E components.1.depends_on.0: no resource 'rigth' is configured: did you mean 'right'?",
        ),
        (
            {"components": [BOARD, motor(attributes={"board": "pi", "maxrpm": 1})]},
            "W components.1.attributes.maxrpm: unknown key: did you mean 'max_rpm'?",
        ),
        (
            {"log": [{"pattern": "(", "level": "info"}]},
            "W log.0.pattern: '(' is not a valid pattern: missing ), unterminated subpattern at position 0: "
            "use the name of a logger, with * for any characters",
        ),
        (
            {"components": [{**BOARD, "attributes": {"a": "${environment.NO}"}}]},
            "W components.0.attributes.a: ${environment.NO} was not replaced: "
            "the environment has no 'NO': use one of HOME",
        ),
        (
            {"jobs": [{"name": "j", "schedule": "1s", "resource": "pi", "method": "M"}], "components": []},
            "W jobs.0.resource: no resource 'pi' is configured: configure it or correct the name",
        ),
        (
            {"maintenance": {"sensor_name": "rdk:component:sensor/s", "maintenance_allowed_key": "k"}},
            "W maintenance.sensor_name: no resource 'rdk:component:sensor/s' is configured: "
            "configure it or correct the name",
        ),
        (
            {"components": [{**BOARD, "frame": {"parent": "wrold"}}]},
            "W components.0.frame.parent: there is no frame 'wrold': did you mean 'world'?",
        ),
        (
            {"modules": [{"name": "m", "executable_path": "/does/not/exist"}]},
            "W modules.0.executable_path: '/does/not/exist' is not a file on this computer",
        ),
    ],
)
def test_findings(path: Path, parts: dict[str, Any], finding: str) -> None:
    assert finding in texts(checked(path, **parts))


def test_everything_is_found_at_once(path: Path) -> None:
    bad = motor(depends_on=["x", "y"], attributes={"board": 1, "max_rpm": "a"})
    result = checked(path, components=[bad, {"name": "?"}, BOARD], debug="yes")
    assert [problem.path for problem in result.problems] == [
        "debug",
        "components.1",
        "components.1.name",
        "components.1",
        "components.0.attributes.board",
        "components.0.attributes.max_rpm",
        "components.0.depends_on.0",
        "components.0.depends_on.1",
    ]
    assert result.resources == 1


def test_a_cycle_is_named_once_with_its_members(path: Path) -> None:
    result = checked(path, components=[BOARD, motor("a", depends_on=["b"]), motor("b", depends_on=["a"]), motor("c")])
    assert texts(result) == [
        "E components.1: these resources depend on each other, so none can start first: "
        "rdk:component:motor/a, rdk:component:motor/b: remove a dependency"
    ]
    assert result.resources == 2


def test_modules_and_remotes_may_have_what_is_not_here(path: Path) -> None:
    result = checked(
        path,
        components=[
            BOARD,
            motor("a", model="acme:x:y", depends_on=["far:board"]),
            motor("b", model="gpoi", depends_on=["arm"]),
        ],
        modules=[{"name": "m", "type": "registry"}],
        remotes=[{"name": "far", "address": "far.local"}],
    )
    assert result.problems == ()
    assert [warning.path for warning in result.warnings] == ["components.2.model", "components.2.depends_on.0"]


def test_a_model_that_nothing_here_can_offer(path: Path) -> None:
    result = checked(path, components=[BOARD, motor("a", model="acme:x:y")])
    assert texts(result) == [
        "W components.1.model: acme:x:y is not built in, and no module is configured that could offer it: "
        "add the module, or correct the model"
    ]


def test_a_missing_file_is_a_problem(path: Path) -> None:
    assert "does not exist" in str(check(path, CLASSES, {}).problems[0])


def test_for_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('{"components": [3,]}')
    assert main_check(path, json=True) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["ok"], content["resources"]) == (False, 0)
    assert (content["problems"][0]["line"], content["problems"][0]["remedy"]) == (
        1,
        "remove the comma before the closing bracket",
    )


def test_for_people_without_colours_where_there_is_no_terminal(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('{"debgu": true,\n "network": {"bind_address": "x"}}')
    assert main_check(str(path)) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "error: network.bind_address\n    'x' is not host:port\n    remedy: write for example" in out
    assert "warning: debgu\n    unknown key\n    remedy: did you mean 'debug'?" in out
    assert out.endswith(f"{path}: 1 error, 1 warning, 0 usable resources\n")


def test_warnings_alone_are_success(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('{"x": 1}')
    assert main_check(path) == 0
    path.write_text("{}")
    assert main_check(path) == 0
    assert "no mistakes found" in capsys.readouterr().out


def test_a_syntax_error_shows_the_line_with_a_caret(path: Path) -> None:
    path.write_text('{"a" 1}')
    lines = list(human(check(path, CLASSES, {})))
    assert any(line.endswith("^") for line in lines)


def test_no_secret_is_printed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2hunter2"
    path.write_text(
        json.dumps({"cloud": {"id": "x", "secret": [secret]}, "components": [{"name": "a", "psk": secret}]})
    )
    assert main_check(path) == 1
    assert main_check(path, json=True) == 1
    assert secret not in capsys.readouterr().out
