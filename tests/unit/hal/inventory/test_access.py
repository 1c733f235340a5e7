"""Permissions of device nodes, and the messages for users without access."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.inventory.access import DeviceNode, User, current_user, nodes, refused, usable

PI = User("pi", 1000, frozenset({1000, 20}), frozenset({"dialout", "i2c"}))
ROOT = User("root", 0, frozenset({0}))


def node(mode: int, *, uid: int = 0, gid: int = 0, group: str = "root", path: str = "/dev/i2c-1") -> DeviceNode:
    return DeviceNode(path, uid, gid, group, mode)


def test_root_may_everything() -> None:
    assert usable(node(0o000), ROOT)


@pytest.mark.parametrize(
    ("result", "may"),
    [
        (node(0o600), False),
        (node(0o666), True),
        (node(0o660, gid=20), True),
        (node(0o640, gid=20), False),
        (node(0o604), False),
        (node(0o600, uid=1000), True),
        (node(0o066, uid=1000, gid=20), False),  # the owner's bits apply, even if another class would allow access
        (node(0o606, gid=20), False),  # the group's bits take precedence over those of others
    ],
)
def test_the_one_class_that_the_kernel_looks_at(result: DeviceNode, may: bool) -> None:
    assert usable(result, PI) is may


@given(st.integers(0, 0o777), st.booleans(), st.booleans())
def test_as_the_kernel_decides(mode: int, own: bool, member: bool) -> None:
    result = node(mode, uid=1000 if own else 1, gid=20 if member else 21)
    shift = 6 if own else 3 if member else 0
    assert usable(result, PI) == ((mode >> shift) & 0o6 == 0o6)


def test_a_node_of_root_needs_the_rules() -> None:
    (problem,) = refused([node(0o600)], PI, {"/dev/i2c-1": "i2c"})
    assert problem.subject == "/dev/i2c-1"
    assert "root:root with mode 0600" in problem.reason
    assert "group i2c with mode 0660" in problem.reason
    assert problem.remedy == "install the rules: sudo machine hal install-rules"


def test_a_node_of_a_group_needs_membership() -> None:
    (problem,) = refused([node(0o660, gid=997, group="gpio", path="/dev/gpiochip0")], PI, {"/dev/gpiochip0": "gpio"})
    assert problem.remedy == "sudo usermod -aG gpio pi, then log out and in again"


def test_a_new_member_has_to_log_in_again() -> None:
    (problem,) = refused([node(0o660, gid=998, group="i2c")], PI, {"/dev/i2c-1": "i2c"})
    assert "log out and in again" in problem.remedy
    assert "after this session began" in problem.reason


def test_one_problem_for_each_reason() -> None:
    results = [node(0o600, path=f"/dev/i2c-{number}") for number in range(3)]
    results.append(node(0o660, gid=997, group="spi", path="/dev/spidev0.0"))
    expected = {**{f"/dev/i2c-{number}": "i2c" for number in range(3)}, "/dev/spidev0.0": "spi"}
    first, second = refused(results, PI, expected)
    assert first.subject == "/dev/i2c-0, /dev/i2c-1, /dev/i2c-2"
    assert second.subject == "/dev/spidev0.0"


def test_nodes_are_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/i2c-1").touch(mode=0o640)
    (tmp_path / "dev/i2c-1").chmod(0o640)
    (item,) = nodes(["/dev/i2c-1", "/dev/i2c-2"], tmp_path)
    assert (item.path, item.mode, item.uid) == ("/dev/i2c-1", 0o640, os.geteuid())


def test_the_user_of_this_process() -> None:
    user = current_user()
    assert user.uid == os.geteuid()
    assert os.getegid() in user.gids
    assert user.name
