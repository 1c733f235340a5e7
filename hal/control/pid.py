"""A PID controller without state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gains:
    """Output per unit of error, of its integral (error times seconds) and of its derivative (error per second)."""

    p: float
    i: float
    d: float = 0.0


def pid_output(
    gains: Gains,
    *,
    error: float,
    integral: float,
    derivative: float = 0.0,
    feed_forward: float = 0.0,
    limit: float = 1.0,
) -> float:
    """Return the output, from -limit to limit. The caller must bound the integral to prevent windup."""
    output = feed_forward + gains.p * error + gains.i * integral + gains.d * derivative
    return min(max(output, -limit), limit)
