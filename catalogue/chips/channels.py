"""Attributes that `runtime.builtin.chips.channels` reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Channel(msgspec.Struct, kw_only=True, frozen=True):
    """One channel and what its voltage means."""

    name: str  # of the reading; put the unit in it
    input: str  # number of the input, "0", or a pair of which the difference is measured, "0-1"
    factor: float = 1.0  # the reading is volts times this: for a voltage divider, or a sensor's scale
    offset: float = 0.0  # plus this


def check(channels: Sequence[Channel], inputs: Sequence[str]) -> None:
    """ValueError for an input that does not exist, or a name that occurs twice."""
    names = [channel.name for channel in channels]
    for channel in channels:
        if channel.input not in inputs:
            raise ValueError(f"input {channel.input!r} of {channel.name!r} is none of {', '.join(inputs)}")
        if names.count(channel.name) > 1:
            raise ValueError(f"two channels are called {channel.name!r}")


def each(count: int) -> tuple[Channel, ...]:
    """Every input against ground."""
    return tuple(Channel(name=f"channel_{number}_v", input=str(number)) for number in range(count))
