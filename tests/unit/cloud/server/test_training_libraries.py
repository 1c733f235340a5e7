"""The process of a cloud loads no library of the trainers, even if it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
LIBRARIES = "torch", "onnxruntime", "numpy", "uv"
SCRIPT = f"""
import importlib, pkgutil, sys
import cloud, training.engine, training.environments, training.jobs
for package in (cloud, training.engine, training.environments, training.jobs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(sorted(set({LIBRARIES}) & set(sys.modules)), "cloud.services.training.runner" in sys.modules)
"""


def test_no_module_of_the_cloud_imports_them(tmp_path: Path) -> None:
    for name in LIBRARIES:
        (tmp_path / f"{name}.py").touch()  # comes before an installed one
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    )
    assert done.stdout == "[] True\n", done.stdout + done.stderr
