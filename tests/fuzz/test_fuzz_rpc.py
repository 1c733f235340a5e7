"""Run the fuzz targets of the RPC engine and of archives with Hypothesis, from their seeds."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import fuzz_archives, fuzz_frames, fuzz_hpack, fuzz_mdns

TARGETS = (fuzz_archives, fuzz_frames, fuzz_hpack, fuzz_mdns)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_seeds(target: ModuleType):
    for seed in target.SEEDS:
        for step in (b"\x01", b"\x07", b"\xff"):
            target.run_input(step + seed)
            target.run_input(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@settings(max_examples=200)
@given(data=st.data())
def test_mutated_seeds(target: ModuleType, data: st.DataObject):
    seed = bytearray(b"".join(data.draw(st.lists(st.sampled_from(target.SEEDS), min_size=1, max_size=3))))
    for _ in range(data.draw(st.integers(0, 6))):
        seed[data.draw(st.integers(0, len(seed) - 1))] = data.draw(st.integers(0, 255))
    target.run_input(bytes(seed) + data.draw(st.binary(max_size=20)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@given(noise=st.binary(max_size=200))
def test_noise(target: ModuleType, noise: bytes):
    target.run_input(noise)
