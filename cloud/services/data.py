"""viam.app.data.v1.DataService: what machines have captured. Which role each call needs is one table.

Calls with a filter reach what the caller has a role for, and nothing else; those that delete reach what he owns.
"""

from __future__ import annotations

from cloud import permissions
from cloud.services.base import guarded
from cloud.services.data_binary import Binary
from cloud.services.data_labels import Labels
from cloud.services.data_sql import Queries
from cloud.services.data_tabular import Tabular


@guarded(permissions.DATA)
class DataService(Binary, Tabular, Queries, Labels):
    """One call. What is not here is UNIMPLEMENTED."""
