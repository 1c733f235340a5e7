"""Channels of analog-to-digital converters, as they are configured and read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from catalogue.chips.channels import Channel
from runtime.resource import Value


async def readings(channels: Sequence[Channel], volts: Callable[[str], Awaitable[float]]) -> Mapping[str, Value]:
    """All channels, one after the other."""
    return {channel.name: await volts(channel.input) * channel.factor + channel.offset for channel in channels}
