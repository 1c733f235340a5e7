"""The PID law."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gains:
    """Output per error, per error times second, and per error by second."""

    p: float
    i: float
    d: float = 0.0


def pid(
    gains: Gains,
    *,
    error: float,
    integral: float,
    derivative: float = 0.0,
    feed_forward: float = 0.0,
    limit: float = 1.0,
) -> float:
    """The output, from -limit to limit. Whoever keeps the integral bounds it, so that nothing winds up."""
    output = feed_forward + gains.p * error + gains.i * integral + gains.d * derivative
    return min(max(output, -limit), limit)
