"""Runs drivers as a module: a separate program, which machine-server starts and calls.

    if __name__ == "__main__":
        run_module(Thermometer, Fan)

See docs/howto/write-a-module.md.

Public, in the order in which to read them:

* `api`: Custom APIs: a base class and its protobuf service
* `meta`: meta.json: the description of a module, in the format of the registry
* `start`: Arguments and environment of a module, as defined by the published module protocol
* `packing`: Packs a module's folder as an archive for the registry and for machines
* `program`: The program of a module: command line, signals, exit codes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.sdk.api import own_api as own_api
    from runtime.sdk.meta import FILE as FILE
    from runtime.sdk.meta import Meta as Meta
    from runtime.sdk.meta import check_offers as check_offers
    from runtime.sdk.meta import parse_meta as parse_meta
    from runtime.sdk.packing import pack as pack
    from runtime.sdk.packing import read_folder as read_folder
    from runtime.sdk.program import run_module as run_module
    from runtime.sdk.start import HARDWARE_VARIABLE as HARDWARE_VARIABLE
    from runtime.sdk.start import data_folder as data_folder
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "api": ["own_api"],
            "meta": ["FILE", "Meta", "check_offers", "parse_meta"],
            "start": ["HARDWARE_VARIABLE", "data_folder"],
            "packing": ["pack", "read_folder"],
            "program": ["run_module"],
        },
    )
