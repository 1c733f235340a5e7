"""The generated reference page is current."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from models import BUILTIN

ROOT = Path(__file__).resolve().parents[4]


def test_the_reference_of_models_is_current() -> None:
    spec = importlib.util.spec_from_file_location("gen_model_reference", ROOT / "tools" / "gen_model_reference.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (ROOT / "docs" / "reference" / "models.md").read_text()
    assert written == generator.page(), "run make generate"
    for api, model in BUILTIN:
        assert f"## `{api}`" in written
        assert f"### `{model.rpartition(':')[2]}`" in written
