"""viam.app.data.v1.DataService: what machines have captured. Which role each call needs is one table.

Calls with a filter reach what the caller has a role for, and nothing else; those that delete reach what he owns.
"""

from __future__ import annotations

from typing import Final

from cloud.access import Of, Role
from cloud.services.base import SELF, Rule, guarded, operator, owner
from cloud.services.data_binary import Binary
from cloud.services.data_labels import Labels
from cloud.services.data_sql import Queries
from cloud.services.data_tabular import Tabular

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
    "create_binary_data_signed_url": Rule(Role.OPERATOR, Of.FILE, "binary_data_id", home=True),  # outlasts a share
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
}


@guarded(RULES)
class DataService(Binary, Tabular, Queries, Labels):
    """One call. What is not here is UNIMPLEMENTED."""
