"""Attributes of components of the micro server: what fits, at its limits."""

from __future__ import annotations

import pytest

from micro.engine.attributes import Attributes, Unfit


def test_a_text_has_at_most_a_hundred_characters() -> None:
    attributes = Attributes({"name": "x" * 100, "long": "x" * 101})
    assert attributes.text("name") == "x" * 100
    with pytest.raises(Unfit, match="expected a text"):
        attributes.text("long")
