"""The built-in models: one folder for each, with its attributes, its driver, its simulation, its model and its page.

Importing a name here, or the module `attributes` of a model, imports no hardware, so the cloud can check documents.

Public, in the order in which to read them:

* `table`: Where each built-in model and its attributes are, and the I2C addresses of chips
* `builtin`: The built-in models by API and name, and the class of each model's attributes
* `check`: The check of a whole configuration, shared by the commands, the cloud's pages and calls, and the machine
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.builtin import Builtin as Builtin
    from models.builtin import Models as Models
    from models.builtin import builtin_models as builtin_models
    from models.builtin import described as described
    from models.check import RESOURCES as RESOURCES
    from models.check import Checked as Checked
    from models.check import check_document as check_document
    from models.check import checked_in_steps as checked_in_steps
    from models.check import in_cloud as in_cloud
    from models.table import ATTRIBUTES as ATTRIBUTES
    from models.table import BUILTIN as BUILTIN
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "table": ["ATTRIBUTES", "BUILTIN"],
            "builtin": ["Builtin", "Models", "builtin_models", "described"],
            "check": ["RESOURCES", "Checked", "check_document", "checked_in_steps", "in_cloud"],
        },
    )
