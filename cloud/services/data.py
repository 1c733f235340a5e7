"""viam.app.data.v1.DataService: what machines have captured. Which role each call needs is one table.

Calls with a filter reach what the caller has a role for, and nothing else; those that delete reach what he owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cloud.access import Of
from cloud.services.base import SELF, guarded, operator, owner
from cloud.services.data_binary import Binary
from cloud.services.data_labels import Labels
from cloud.services.data_sql import Queries
from cloud.services.data_tabular import Tabular
from schema.errors import ErrorKind, MachineError

_NO_MQL: Final = "MongoDB's query language is not spoken here; ask with TabularDataBySQL, or ExportTabularData"
_NO_DATABASE: Final = "no MongoDB stands behind this cloud; ask with TabularDataBySQL"
_NO_INDEX: Final = "indexes cannot be made here: the cloud makes its own"
_NO_SEQUENCES: Final = "sequences are not kept here; put files into datasets, and tag them"

NOT_BUILT: Final = {
    "tabular_data_by_mql": _NO_MQL,
    "create_saved_query": _NO_MQL,
    "update_saved_query": _NO_MQL,
    "get_saved_query": _NO_MQL,
    "delete_saved_query": _NO_MQL,
    "list_saved_queries": _NO_MQL,
    "get_database_connection": _NO_DATABASE,
    "configure_database_user": _NO_DATABASE,
    "create_index": _NO_INDEX,
    "list_indexes": _NO_INDEX,
    "delete_index": _NO_INDEX,
    "add_sequences_to_dataset": _NO_SEQUENCES,
    "remove_sequences_from_dataset": _NO_SEQUENCES,
    "create_sequence": _NO_SEQUENCES,
    "get_sequence": _NO_SEQUENCES,
    "update_sequence": _NO_SEQUENCES,
    "delete_sequence": _NO_SEQUENCES,
    "list_sequences": _NO_SEQUENCES,
    "sequences_by_dataset_id": _NO_SEQUENCES,
    "get_sequence_binary_data": _NO_SEQUENCES,
}
"""Published methods that this cloud does not have, and what there is instead."""

RULES: Final = {
    "tabular_data_by_filter": SELF,
    "tabular_data_by_sql": operator(Of.ORGANIZATION, "organization_id"),
    "export_tabular_data": operator(Of.PART, "part_id"),
    "get_latest_tabular_data": operator(Of.PART, "part_id"),
    "delete_tabular_data": owner(Of.ORGANIZATION, "organization_id"),
    "page_of_readings": SELF,
    "retention": operator(Of.ORGANIZATION, "organization_id"),
    "set_retention": owner(Of.ORGANIZATION, "organization_id"),
    "binary_data_by_filter": SELF,
    "binary_data_by_ids": SELF,
    "delete_binary_data_by_filter": SELF,
    "delete_binary_data_by_ids": SELF,
    "create_binary_data_signed_url": operator(Of.FILE, "binary_data_id"),
    "file": operator(Of.FILE, "binary_data_id"),
    "add_tags_to_binary_data_by_ids": SELF,
    "add_tags_to_binary_data_by_filter": SELF,
    "remove_tags_from_binary_data_by_ids": SELF,
    "remove_tags_from_binary_data_by_filter": SELF,
    "tags_by_filter": SELF,
    "add_bounding_box_to_image_by_id": SELF,
    "update_bounding_box": SELF,
    "remove_bounding_box_from_image_by_id": SELF,
    "bounding_box_labels_by_filter": SELF,
    "add_binary_data_to_dataset_by_ids": operator(Of.DATASET, "dataset_id"),
    "remove_binary_data_from_dataset_by_ids": operator(Of.DATASET, "dataset_id"),
    **dict.fromkeys(NOT_BUILT, SELF),
}


def refusing(sentence: str) -> Callable[..., Any]:
    """A method that says what there is instead."""

    async def refuse(self: Any, **arguments: Any) -> Any:
        raise MachineError(sentence, kind=ErrorKind.UNSUPPORTED)

    return refuse


class _NotBuilt:
    """Answers in words."""


for _name, _sentence in NOT_BUILT.items():
    setattr(_NotBuilt, _name, refusing(_sentence))


@guarded(RULES)
class DataService(Binary, Tabular, Queries, Labels, _NotBuilt):
    """One call. What is not here is UNIMPLEMENTED."""
