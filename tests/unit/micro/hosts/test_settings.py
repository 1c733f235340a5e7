from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micro.hosts.net import Site
from micro.hosts.settings import BadFile, changed, is_complete, read_json, write_text

JSON = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.integers(1, 100))
def test_beginnings_of_texts_are_not_complete(value: dict[str, Any], cut: int) -> None:
    text = json.dumps(value)
    assert is_complete(text)
    assert is_complete(json.dumps(value, indent=1) + "\n")
    assert not is_complete(text[: -min(cut, len(text))])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": "}', "x" * 40_000, "null"])
def test_bad_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(BadFile, match="file"):
        read_json(str(path))
    with pytest.raises(BadFile, match="cannot be read"):
        read_json(str(tmp_path / "none"))


def test_files_are_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    assert changed(path) == (0, 0)
    write_text(path, '{"a": 1}')
    write_text(path, '{"a": 12}')
    assert read_json(path) == {"a": 12}
    assert changed(path)[1] == 9
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("url", "host", "port", "secure"),
    [
        ("http://10.0.0.2:8090", "10.0.0.2", 8090, False),
        ("https://cloud.example", "cloud.example", 443, True),
        ("https://cloud.example:8443/", "cloud.example", 8443, True),
    ],
)
def test_addresses(url: str, host: str, port: int, secure: bool) -> None:
    site = Site(url)
    assert (site.host, site.port, site.secure) == (host, port, secure)


@pytest.mark.parametrize("url", ["", "cloud.example", "ftp://x", "http://", "http://a/b", "http://a:b"])
def test_bad_addresses(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Site(url)
