"""Suggestions for a model that does not exist."""

from __future__ import annotations

from schema.missing_models import unknown_model
from schema.names import API, Model


def test_a_model_with_the_same_last_word_is_suggested() -> None:
    api = API.parse("rdk:component:motor")
    pairs = [(str(api), "rdk:builtin:stepper"), (str(api), "acme:motors:servo"), (str(api), "rdk:builtin:fake")]
    for wrong, remedy in (
        ("example:parts:stepper", "did you mean 'stepper'?"),
        ("example:parts:servo", "did you mean 'acme:motors:servo'?"),
        ("example:parts:turbine", "known models: acme:motors:servo, fake, stepper"),
    ):
        assert remedy in str(unknown_model(api, Model.parse(wrong), pairs, [api])), wrong
