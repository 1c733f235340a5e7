"""The variables that modules inherit from machine-server."""

from __future__ import annotations

from runtime.programs.environment import VARIABLE, inherited


def test_credentials_stay_with_the_server() -> None:
    secrets = {"AWS_SECRET_ACCESS_KEY": "s", "MACHINE_CLOUD_TURN_SECRET": "s", "VIAM_API_KEY": "s", "XDG_TOKEN": "s"}
    kept = {"PATH": "/bin", "LC_ALL": "C", "VIAM_TCP_SOCKETS": "1", "LD_LIBRARY_PATH": "/l", "PYTHONPATH": "/p"}
    assert inherited({**secrets, **kept, "MACHINE_HOME": "/m", "EDITOR": "vi"}) == kept


def test_the_administrator_can_name_more() -> None:
    environment = {"AWS_REGION": "r", "AWS_SECRET_ACCESS_KEY": "s", "MY_TOKEN": "t", VARIABLE: "AWS_*, MY_TOKEN"}
    assert inherited(environment) == {"AWS_REGION": "r", "AWS_SECRET_ACCESS_KEY": "s", "MY_TOKEN": "t"}
    assert inherited({"ANY": "1", VARIABLE: "*"}) == {"ANY": "1", VARIABLE: "*"}
