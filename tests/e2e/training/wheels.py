"""Small wheels, and a folder with an index of them: tests of environments need no network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

TIME = (2026, 1, 1, 0, 0, 0)


def add_wheel(
    index: Path, name: str, version: str, files: Mapping[str, str | bytes], requires: Sequence[str] = ()
) -> Path:
    """Add a wheel with these files to the index below a folder."""
    folder, info = index / name, f"{name}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    fields = "".join(f"Requires-Dist: {line}\n" for line in requires)
    content: dict[str, str | bytes] = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{fields}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path, TIME), text, zipfile.ZIP_DEFLATED)
    links = [f'<a href="{path.name}#sha256={digest(path)}">{path.name}</a>' for path in sorted(folder.glob("*.whl"))]
    (folder / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")
    return wheel


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def url(index: Path) -> str:
    """Return the URL of the index below a folder."""
    return index.as_uri()
