"""Mechanisms agree with the chains that they are made of, and Jacobians with finite differences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.components.motion.kinematics import JointType
from engine.geometry.chain import forward_kinematics
from engine.geometry.spatial import Transform, about
from engine.geometry.sva import Chain, Joint, Link
from engine.kinematics import arms
from engine.kinematics.mechanism import (
    IDENTITY,
    compose,
    flat,
    inverse_of,
    mechanism_of,
    rotation_between,
    transform_of,
)

SLIDING = Chain(
    "sliding",
    (
        Joint("x", JointType.PRISMATIC, (2.0, 0.0, 0.0), 0.0, 500.0),
        Link("elbow", Transform(about((1.0, 0.0, 0.0), 0.7), (10.0, 20.0, 30.0))),
        Joint("turn", JointType.REVOLUTE, (0.0, 1.0, 1.0), -90.0, 90.0),
        Link("hand", Transform(translation=(0.0, 0.0, 100.0))),
    ),
)
CHAINS = [SLIDING, *map(arms.named, arms.NAMES)]
chains = st.sampled_from(CHAINS)


@st.composite
def postures(draw: st.DrawFn) -> tuple[Chain, list[float]]:
    chain = draw(chains)
    return chain, [draw(st.floats(max(j.low, -360), min(j.high, 500))) for j in chain.joints]


@given(postures())
def test_the_output_is_that_of_the_chain(posture: tuple[Chain, list[float]]) -> None:
    chain, positions = posture
    mechanism = mechanism_of(chain)
    assert mechanism.output(mechanism.to_values(positions)) == pytest.approx(
        flat(forward_kinematics(chain, positions)), abs=1e-6
    )


@given(postures())
def test_positions_are_converted_there_and_back(posture: tuple[Chain, list[float]]) -> None:
    chain, positions = posture
    mechanism = mechanism_of(chain)
    assert mechanism.to_positions(mechanism.to_values(positions)) == pytest.approx(positions)


@settings(deadline=None)
@given(postures())
def test_the_jacobian_is_the_derivative(posture: tuple[Chain, list[float]]) -> None:
    chain, positions = posture
    mechanism = mechanism_of(chain)
    values = mechanism.to_values(positions)
    output, columns = mechanism.jacobian(values)
    assert output == pytest.approx(mechanism.output(values))
    step = 1e-5
    for index, column in enumerate(columns):
        ahead, behind = list(values), list(values)
        ahead[index] += step
        behind[index] -= step
        a, b = mechanism.output(behind), mechanism.output(ahead)
        moved = [(b[i] - a[i]) / (2 * step) for i in (3, 7, 11)]
        turned = [part / (2 * step) for part in rotation_between(a, b)]
        assert column == pytest.approx([*moved, *turned], abs=2e-2)


def test_a_transform_and_its_inverse_cancel_out() -> None:
    m = flat(Transform(about((1.0, 2.0, 3.0), 1.1), (10.0, -20.0, 30.0)))
    assert compose(m, inverse_of(m)) == pytest.approx(IDENTITY)
    assert flat(transform_of(m)) == pytest.approx(m)


@given(st.floats(-math.pi, math.pi), st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: math.hypot(*v) > 0.1))
def test_the_rotation_between_two_frames(angle: float, axis: tuple[float, float, float]) -> None:
    start = flat(Transform(about((0.3, -0.5, 0.2), 0.9)))
    end = compose(flat(Transform(about(axis, angle))), start)
    turn = rotation_between(start, end)
    assert math.hypot(*turn) == pytest.approx(abs(angle), abs=1e-5)
    assert compose(flat(Transform(about(turn, math.hypot(*turn)))), start) == pytest.approx(end, abs=1e-5)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0)])
def test_half_a_turn(axis: tuple[float, float, float]) -> None:
    turn = rotation_between(IDENTITY, flat(Transform(about(axis, math.pi))))
    assert math.hypot(*turn) == pytest.approx(math.pi)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.6, -0.8, 0.0)])
def test_half_a_turn_has_its_axis(axis: tuple[float, float, float]) -> None:
    rotation = rotation_between(IDENTITY, flat(Transform(about(axis, math.pi))))
    assert math.hypot(*rotation) == pytest.approx(math.pi)
    along = sum(part * share for part, share in zip(rotation, axis, strict=True))
    assert abs(along) == pytest.approx(math.pi)  # either direction is half a turn
