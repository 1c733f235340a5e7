"""The configuration with which a machine uses a trained model."""

from __future__ import annotations

from typing import Any

import pytest

from models.builtin import builtin_models
from models.check import check_document
from schema.document.machine import decode_document
from training.deployment import with_model


def names(document: dict[str, Any], section: str) -> list[str]:
    return [entry["name"] for entry in document[section]]


def test_everything_is_added_to_an_empty_configuration() -> None:
    document = with_model({"components": []}, "acme/parts", "1")
    assert document == {
        "components": [],
        "packages": [{"name": "parts", "package": "acme/parts", "version": "1", "type": "ml_model"}],
        "services": [
            {
                "name": "parts-model",
                "api": "rdk:service:mlmodel",
                "model": "onnx",
                "attributes": {
                    "model_path": "${packages.ml_model.parts}/model.onnx",
                    "label_path": "${packages.ml_model.parts}/labels.txt",
                },
            },
            {
                "name": "parts",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {"mlmodel_name": "parts-model"},
            },
        ],
    }


def test_only_the_version_changes_where_the_model_is_used() -> None:
    first = with_model({}, "acme/parts", "1")
    second = with_model(first, "acme/parts", "2")
    assert second == {**first, "packages": [{**first["packages"][0], "version": "2"}]}
    assert first["packages"][0]["version"] == "1"
    second["services"].pop()
    assert names(with_model(second, "acme/parts", "3"), "services") == ["parts-model", "parts"]


def test_names_that_are_in_use_are_avoided() -> None:
    document = {
        "packages": [{"name": "parts", "package": "acme/other", "version": "1", "type": "module"}],
        "services": [{"name": "parts-2"}, {"name": "parts-2-model"}, "no object"],
    }
    result = with_model(document, "acme/parts", "1")
    assert names(result, "packages") == ["parts", "parts-2"]
    assert names(result, "services") == ["parts-2", "parts-2-model", "parts-2-model-2", "parts-2-2"]


@pytest.mark.parametrize("package", ["acme/ü!", "acme/" + "x" * 300, "parts", "acme/a b:c"])
def test_the_result_is_a_valid_configuration(package: str) -> None:
    document = with_model({"services": None, "packages": "none"}, package, "1")
    assert all(name.isascii() and len(name) <= 60 for name in names(document, "services"))
    import json

    decoded = decode_document(json.dumps(with_model({}, "acme/parts", "1")).encode())
    assert decoded.problems == ()
    assert check_document(decoded, builtin_models(), frozenset()).problems == ()
