"""Speed control of first-order motors with friction and an encoder disc: bounded, exact, and clear about failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hal.control.pid import Gains, pid_output
from hal.control.speed import NEAR, NUDGE, SpeedControl

TOP = 2.0  # revolutions per second
DT = 0.02


@dataclass
class Plant:
    """A motor with first-order lag `tau` (s); `friction` is subtracted from the power."""

    ticks: int = 200
    tau: float = 0.1
    friction: float = 0.0
    position: float = 0.0
    speed: float = 0.0

    def run(self, power: float, dt: float) -> None:
        for _ in range(20):
            against = math.copysign(self.friction, self.speed if abs(self.speed) > 1e-6 else power)
            drive = power - against
            if abs(self.speed) < 1e-6 and abs(power) <= self.friction:
                self.speed = drive = 0.0
            elif self.speed and (self.speed + (drive * TOP - self.speed) / self.tau * dt / 20) * self.speed < 0:
                self.speed = 0.0
                continue
            self.speed += (drive * TOP - self.speed) / self.tau * dt / 20
            self.position += self.speed * dt / 20

    @property
    def seen(self) -> float:
        return math.floor(self.position * self.ticks) / self.ticks


def control(plant: Plant, **settings: float) -> SpeedControl:
    gains = Gains(settings.get("p", 0.5), settings.get("i", 5.0), settings.get("d", 0.0))
    created = SpeedControl(
        top_speed=TOP, acceleration=settings.get("acceleration", 2.0), ticks_per_revolution=plant.ticks, gains=gains
    )
    created.begin(plant.seen)
    return created


def travel(plant: Plant, created: SpeedControl, place: float, speed: float) -> float:
    """Run the plant until the control reports rest at `place`; return the time taken in seconds."""
    for beat in range(10_000):
        power = created.to_place(plant.seen, place, speed, DT)
        if power is None:
            return beat * DT
        assert -1 <= power <= 1
        plant.run(power, DT)
    raise AssertionError("never arrived")


@given(
    st.floats(-5, 5),
    st.floats(0.1, TOP),
    st.sampled_from([20, 200, 2000]),
    st.floats(0.02, 0.25),
    st.sampled_from([0.0, 0.05, 0.2]),
)
@example(place=1.0, speed=0.109375, ticks=200, tau=0.232421875, friction=0.0)
def test_a_place_is_reached_to_the_tick(place: float, speed: float, ticks: int, tau: float, friction: float) -> None:
    plant = Plant(ticks, tau, friction)
    controller = control(plant)
    goal = controller.nearest(place)
    travel(plant, controller, goal, speed)
    assert abs(plant.seen - goal) <= max(0.5 / ticks, NEAR)
    for _ in range(100):
        plant.run(0.0, DT)
    assert abs(plant.seen - goal) <= max(1.5 / ticks, 2 * NEAR), "it was not at rest"


@pytest.mark.parametrize("rpm", [6, 60, 110, -45])
@pytest.mark.parametrize("tau", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("friction", [0.0, 0.05])
def test_a_speed_is_kept_on_average_to_the_tick(rpm: float, tau: float, friction: float) -> None:
    plant = Plant(tau=tau, friction=friction)
    controller = control(plant)
    for _ in range(250):
        plant.run(controller.to_speed(plant.seen, rpm / 60, DT), DT)
    begin = plant.seen
    for _ in range(500):
        plant.run(controller.to_speed(plant.seen, rpm / 60, DT), DT)
    assert plant.seen - begin == pytest.approx(rpm / 60 * 500 * DT, abs=0.03)


def test_the_speed_rises_as_the_ramp_allows() -> None:
    plant = Plant(ticks=2000, tau=0.05)
    controller = control(plant, acceleration=1.0)
    seen = []
    for _ in range(150):
        plant.run(controller.to_speed(plant.seen, 1.5, DT), DT)
        seen.append(plant.speed)
    assert seen[25] == pytest.approx(0.5, abs=0.15)
    assert seen[50] == pytest.approx(1.0, abs=0.15)
    assert max(seen) < 1.6
    assert seen[-1] == pytest.approx(1.5, abs=0.05)


def test_an_unreachable_speed_winds_nothing_up() -> None:
    plant = Plant()
    controller = control(plant)
    for _ in range(1000):
        plant.run(controller.to_speed(plant.seen, 3 * TOP, DT), DT)
    for _ in range(150):
        plant.run(controller.to_speed(plant.seen, 0.5, DT), DT)
    assert plant.speed == pytest.approx(0.5, abs=0.1)


def test_a_blocked_shaft_is_reported() -> None:
    plant = Plant()
    controller = control(plant)
    for beat in range(500):
        controller.to_speed(plant.seen, 1.0, DT)
        if controller.starved > 1.0:
            assert beat * DT > 1.0
            break
    else:
        raise AssertionError("it never said so")


@pytest.mark.parametrize("to_place", [False, True])
def test_an_encoder_that_counts_backwards_is_reported(to_place: bool) -> None:
    plant = Plant()
    controller = control(plant)
    for _ in range(300):
        power = (
            controller.to_place(-plant.seen, 5.0, 1.0, DT) if to_place else controller.to_speed(-plant.seen, 1.0, DT)
        )
        assert power is not None
        plant.run(power, DT)
        if controller.runaway > 0.5:
            return
    raise AssertionError("it never said so")


def test_a_load_that_turns_the_shaft_back_is_reported() -> None:
    plant = Plant(tau=0.05)
    controller = control(plant)
    for _ in range(3000):
        power = controller.to_place(plant.seen, 1.0, 1.0, DT)
        assert power is not None
        plant.run(power - 0.3, DT)
        if controller.hunting > 10:
            return
    raise AssertionError("it never said so")


def test_a_slow_healthy_motor_is_neither() -> None:
    plant = Plant(ticks=20)
    controller = control(plant)
    for _ in range(3000):
        plant.run(controller.to_speed(plant.seen, 0.1 / 60, DT), DT)
        assert controller.starved < 0.5
        assert controller.runaway < 0.5


numbers = st.floats(-1e6, 1e6)


@given(numbers, numbers, numbers, numbers, numbers, numbers, numbers, st.floats(0, 10))
def test_pid_is_bounded(
    p: float, i: float, d: float, error: float, integral: float, derivative: float, forward: float, limit: float
) -> None:
    output = pid_output(
        Gains(p, i, d), error=error, integral=integral, derivative=derivative, feed_forward=forward, limit=limit
    )
    assert -limit <= output <= limit


def test_pid_is_the_sum_of_its_terms() -> None:
    assert pid_output(
        Gains(0.5, 2.0, 0.25), error=0.2, integral=0.1, derivative=-0.4, feed_forward=0.3
    ) == pytest.approx(0.5)


def test_the_first_nudge_of_a_stuck_shaft_has_its_full_strength() -> None:
    controller = SpeedControl(top_speed=1.0, acceleration=1e9, ticks_per_revolution=100, gains=Gains(0.0, 0.0))
    controller.begin(0.0)
    dt, powers = 0.01, []
    for _ in range(40):
        power = controller.to_place(0.0, 0.05, 1.0, dt)
        assert power is not None
        powers.append(power)
    rises = [after - before for before, after in pairwise(powers) if after > before]
    assert rises[-1] == pytest.approx(NUDGE * dt)
