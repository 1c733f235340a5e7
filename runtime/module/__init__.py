"""Drivers as a module: a program of its own, which a machine-server starts and speaks to.

    if __name__ == "__main__":
        run_module(Thermometer, Fan)

docs/howto/write-a-module.md shows how.
"""

from runtime.module.api import own_api as own_api
from runtime.module.program import run_module as run_module
from runtime.module.start import data_folder as data_folder

__all__ = ["data_folder", "own_api", "run_module"]
