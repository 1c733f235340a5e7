"""Attributes of `common`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Channel(msgspec.Struct, kw_only=True, frozen=True):
    """One channel, and the conversion of its voltage to a reading."""

    name: str  # name of the reading; should contain the unit
    input: str  # input number, such as "0", or a pair for a differential measurement, such as "0-1"
    factor: float = 1.0  # the voltage is multiplied by this: for a voltage divider, or a sensor's scale
    offset: float = 0.0  # added after the multiplication


def check(channels: Sequence[Channel], inputs: Sequence[str]) -> None:
    """Raise ValueError for an input that does not exist, or a name that occurs twice."""
    names = [channel.name for channel in channels]
    for channel in channels:
        if channel.input not in inputs:
            raise ValueError(f"input {channel.input!r} of {channel.name!r} is not one of {', '.join(inputs)}")
        if names.count(channel.name) > 1:
            raise ValueError(f"two channels are called {channel.name!r}")


def each(count: int) -> tuple[Channel, ...]:
    """Return a channel for each of `count` inputs, measured against ground."""
    return tuple(Channel(name=f"channel_{number}_v", input=str(number)) for number in range(count))
