"""Runs drivers as a module: a separate program, which machine-server starts and calls.

    if __name__ == "__main__":
        run_module(Thermometer, Fan)

See docs/howto/write-a-module.md.
"""

from runtime.sdk.api import own_api as own_api
from runtime.sdk.program import run_module as run_module
from runtime.sdk.start import data_folder as data_folder

__all__ = ["data_folder", "own_api", "run_module"]
