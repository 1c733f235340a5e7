"""URDF documents whose links are no tree."""

from __future__ import annotations

import pytest

from engine.kinematics.urdf import load_urdf


def robot(links: str, joints: list[tuple[str, str]]) -> bytes:
    parts = "".join(f'<link name="{name}"/>' for name in links)
    for parent, child in joints:
        parts += (
            f'<joint name="to-{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            '<limit lower="-1" upper="1"/></joint>'
        )
    return f'<robot name="r">{parts}</robot>'.encode()


def test_a_chain() -> None:
    assert load_urdf(robot("ab", [("a", "b")])).name == "r"


@pytest.mark.parametrize(
    ("links", "joints", "reason"),
    [
        ("abcd", [("b", "c"), ("c", "b"), ("c", "d")], "link 'c' is its own ancestor"),
        ("ab", [("x", "b")], "no link 'x'"),
    ],
)
def test_links_that_hang_on_themselves_or_on_nothing(links: str, joints: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        load_urdf(robot(links, joints))
