"""Rejected documents are freed when their last reference goes, without garbage collection."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from models.builtin import builtin_models
from models.check import check_document, in_cloud
from schema.document.machine import decode_document_value


class Document(dict[str, Any]):
    """A document to which a weak reference is possible."""


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    "rejected",
    [
        {"components": 1},
        {"components": [{"name": "a", "api": "b"}]},
        {"components": [{"name": "a", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": "x"}}]},
        {"components": [{"name": "a", "api": "rdk:component:motor", "model": "fake", "depends_on": ["b"]}]},
        {"network": {"bind_address": "nonsense"}},
    ],
    ids=["type", "api", "attribute", "dependency", "address"],
)
def test_a_rejected_document_is_freed_at_once(rejected: dict[str, Any]) -> None:
    document = Document(rejected)
    problems = check_document(decode_document_value(document), builtin_models(), in_cloud(document)).problems
    assert problems
    alive = weakref.ref(document)
    del problems, document
    assert alive() is None
