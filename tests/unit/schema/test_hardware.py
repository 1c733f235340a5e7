"""Which ports the description of one selects."""

from __future__ import annotations

import pytest

from schema.hardware import SerialIdentity

PORT = SerialIdentity(0x0403, 0x6001, "A1", 1)


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        (SerialIdentity(), True),
        (SerialIdentity(vendor=0x0403, interface=1), True),
        (PORT, True),
        (SerialIdentity(vendor=0x0404), False),
        (SerialIdentity(product=0x6002), False),
        (SerialIdentity(serial="A2"), False),
        (SerialIdentity(interface=0), False),
    ],
)
def test_each_field_that_is_set_must_be_equal(selector: SerialIdentity, fits: bool) -> None:
    assert selector.fits(PORT) is fits
