"""viam.app.data.v1.DataService: data that machines have captured.

Calls with a filter are limited to data for which the caller has a role; deletion by filter, to data that the caller
owns.
"""

from __future__ import annotations

from cloud.services.common.base import guarded
from cloud.services.data.data_binary import Binary
from cloud.services.data.data_labels import Labels
from cloud.services.data.data_saved import SavedQueries
from cloud.services.data.data_sql import Queries
from cloud.services.data.data_tabular import Tabular


@guarded
class DataService(Binary, Tabular, Queries, SavedQueries, Labels):
    """The calls of DataService for one caller. Published methods that are missing here are UNIMPLEMENTED."""
