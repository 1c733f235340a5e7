"""Attributes of a motor on pins. Pure."""

from __future__ import annotations

import msgspec


class BridgePins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that control the bridge: `a` and `b` (with PWM on them, or on `pwm`), or `dir` and `pwm`."""

    a: str = ""  # high, or PWM, turns forward
    b: str = ""  # high, or PWM, turns backward
    dir: str = ""  # high: forward
    pwm: str = ""  # magnitude of the power
    en_high: str = ""  # enables the bridge: high while powered
    en_low: str = ""  # enables the bridge: low while powered

    def __post_init__(self) -> None:
        configured = [name for name in ("a", "b", "dir", "pwm") if getattr(self, name)]
        if configured not in (["a", "b"], ["a", "b", "pwm"], ["dir", "pwm"]):
            only = f"the pins {', '.join(configured)} are not enough, or too many" if configured else "no pins are set"
            raise ValueError(f"{only}: use a and b, or a, b and pwm, or dir and pwm")
        pins = self.all()
        if len(set(pins)) != len(pins):
            raise ValueError("a pin is named twice")

    def all(self) -> list[str]:
        """Return every configured pin."""
        return [pin for pin in (self.a, self.b, self.dir, self.pwm, self.en_high, self.en_low) if pin]

    def waves(self) -> list[str]:
        """Return the pins that carry PWM."""
        return [self.pwm] if self.pwm else [self.a, self.b]
