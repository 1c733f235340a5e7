"""Conversion of what microphones record to samples of 16 bits. Pure; runs in a worker."""

from __future__ import annotations

import array
import sys
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from engine import AudioInfo, AudioProperties
from rpc.peers import SOUND_CHANNELS, SOUND_RATES, Sound
from schema import ErrorKind, MachineError

MAX_CHUNK: Final = 4 << 20  # bytes; five seconds of the largest format


def _from_32_bits(data: bytes) -> bytes:
    """Keep the upper half of each sample."""
    samples = bytearray(len(data) // 2)
    samples[0::2], samples[1::2] = data[2::4], data[3::4]
    return bytes(samples)


def _from_floats(data: bytes) -> bytes:
    """Scale from -1 to 1; what is louder is cut off, and NaN becomes silence."""
    floats = array.array("f", data)
    if sys.byteorder == "big":
        floats.byteswap()
    samples = array.array("h", (_sample(value) for value in floats))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


def _sample(value: float) -> int:
    if -1 <= value <= 1:
        return int(value * 32_767)
    return 32_767 if value > 1 else -32_767 if value < -1 else 0


CODECS: Final = MappingProxyType[str, tuple[int, Callable[[bytes], bytes]]](
    {"pcm16": (2, bytes), "pcm32": (4, _from_32_bits), "pcm32_float": (4, _from_floats)}
)
"""Bytes of a sample, and its conversion, by codec; the first one that a microphone supports is requested."""


def codec_of(name: str, properties: AudioProperties) -> str:
    """Return the codec to request. Raises MachineError (UNSUPPORTED) if the microphone's sound cannot be sent."""
    codec = next((codec for codec in CODECS if codec in properties.supported_codecs), None)
    if codec is None:
        raise _unsupported(f"{name} records {_listed(properties.supported_codecs)}", f"record {_listed(list(CODECS))}")
    _check_format(name, AudioInfo(codec, properties.sample_rate_hz, properties.num_channels))
    return codec


def sound_of(name: str, data: bytes, info: AudioInfo) -> Sound:
    """Return a chunk as samples. Raises MachineError: UNSUPPORTED for its format, INVALID for data of a wrong size."""
    if info.codec not in CODECS:
        raise _unsupported(f"{name} records {info.codec!r}", f"record {_listed(list(CODECS))}")
    _check_format(name, info)
    size, convert = CODECS[info.codec]
    if len(data) > MAX_CHUNK or len(data) % (size * info.num_channels):
        raise MachineError(
            f"{name} has returned a chunk of {len(data)} bytes, which are not at most {MAX_CHUNK} of complete samples",
            kind=ErrorKind.INVALID,
            remedy=f"return {size * info.num_channels} bytes for each time",
        )
    return Sound(info.sample_rate_hz, info.num_channels, convert(data))


def _check_format(name: str, info: AudioInfo) -> None:
    lowest, highest = SOUND_RATES
    if not lowest <= info.sample_rate_hz <= highest:
        raise _unsupported(
            f"{name} records {info.sample_rate_hz} samples a second", f"record {lowest} to {highest} a second"
        )
    if info.num_channels not in SOUND_CHANNELS:
        raise _unsupported(f"{name} records {info.num_channels} channels", "record one or two channels")


def _unsupported(fact: str, remedy: str) -> MachineError:
    return MachineError(
        f"{fact}, which cannot be sent as a stream", kind=ErrorKind.UNSUPPORTED, remedy=f"{remedy}, or call GetAudio"
    )


def _listed(codecs: Sequence[str]) -> str:
    return ", ".join(codec[:40] for codec in codecs[:8]) or "no codec"
