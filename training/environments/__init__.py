"""Environments of training scripts: their requirements, and folders with the packages that these name.

Public, in the order in which to read them:

* `cache`: The folder of environments: a folder for each, which is complete or does not exist
* `requirements`: The requirements of a training script: which of its files state them, and which lines are accepted
* `environments` (module): Makes the environments of training scripts: from the requirements of a script to an
  interpreter that has them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.environments import environments as environments
    from training.environments.cache import Cache as Cache
    from training.environments.requirements import LOCK as LOCK
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "cache": ["Cache"],
            "requirements": ["LOCK"],
        },
        modules=["environments"],
    )
