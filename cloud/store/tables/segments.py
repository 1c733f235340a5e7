"""Catalog of segments of readings: the tables that DuckLake 1.0 specifies, so that DuckDB can attach this database.

https://ducklake.select/docs/stable/specification/tables/overview. Tables that the cloud does not write must exist, too.
Their first rows come with the first segment.
`segments` and `segment_sums` are ours: what pages and plots need of a segment, and totals of its numbers, which
DuckLake does not have. Paths are relative to the file store.
"""

from typing import Final

TABLES: Final = """
CREATE TABLE ducklake_metadata (key TEXT NOT NULL, value TEXT NOT NULL, scope TEXT, scope_id INTEGER);
CREATE TABLE ducklake_snapshot (
    snapshot_id INTEGER PRIMARY KEY, snapshot_time TEXT, schema_version INTEGER, next_catalog_id INTEGER,
    next_file_id INTEGER
);
CREATE TABLE ducklake_snapshot_changes (
    snapshot_id INTEGER PRIMARY KEY, changes_made TEXT, author TEXT, commit_message TEXT, commit_extra_info TEXT
);
CREATE TABLE ducklake_schema (
    schema_id INTEGER PRIMARY KEY, schema_uuid TEXT, begin_snapshot INTEGER, end_snapshot INTEGER, schema_name TEXT,
    path TEXT, path_is_relative INTEGER
);
CREATE TABLE ducklake_table (
    table_id INTEGER, table_uuid TEXT, begin_snapshot INTEGER, end_snapshot INTEGER, schema_id INTEGER,
    table_name TEXT, path TEXT, path_is_relative INTEGER
);
CREATE INDEX ducklake_table_name ON ducklake_table (table_name);
CREATE TABLE ducklake_view (
    view_id INTEGER, view_uuid TEXT, begin_snapshot INTEGER, end_snapshot INTEGER, schema_id INTEGER, view_name TEXT,
    dialect TEXT, sql TEXT, column_aliases TEXT
);
CREATE TABLE ducklake_tag (
    object_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER, key TEXT, value TEXT
);
CREATE TABLE ducklake_column_tag (
    table_id INTEGER, column_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER, key TEXT, value TEXT
);
CREATE TABLE ducklake_data_file (
    data_file_id INTEGER PRIMARY KEY, table_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER,
    file_order INTEGER, path TEXT, path_is_relative INTEGER, file_format TEXT, record_count INTEGER,
    file_size_bytes INTEGER, footer_size INTEGER, row_id_start INTEGER, partition_id INTEGER, encryption_key TEXT,
    mapping_id INTEGER, partial_max INTEGER
);
CREATE INDEX ducklake_data_file_table ON ducklake_data_file (table_id);
CREATE TABLE ducklake_file_column_stats (
    data_file_id INTEGER, table_id INTEGER, column_id INTEGER, column_size_bytes INTEGER, value_count INTEGER,
    null_count INTEGER, min_value TEXT, max_value TEXT, contains_nan INTEGER, extra_stats TEXT
);
CREATE INDEX ducklake_file_column_stats_file ON ducklake_file_column_stats (data_file_id);
CREATE TABLE ducklake_file_variant_stats (
    data_file_id INTEGER, table_id INTEGER, column_id INTEGER, variant_path TEXT, shredded_type TEXT,
    column_size_bytes INTEGER, value_count INTEGER, null_count INTEGER, min_value TEXT, max_value TEXT,
    contains_nan INTEGER, extra_stats TEXT
);
CREATE TABLE ducklake_delete_file (
    delete_file_id INTEGER PRIMARY KEY, table_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER,
    data_file_id INTEGER, path TEXT, path_is_relative INTEGER, format TEXT, delete_count INTEGER,
    file_size_bytes INTEGER, footer_size INTEGER, encryption_key TEXT, partial_max INTEGER
);
CREATE TABLE ducklake_column (
    column_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER, table_id INTEGER, column_order INTEGER,
    column_name TEXT, column_type TEXT, initial_default TEXT, default_value TEXT, nulls_allowed INTEGER,
    parent_column INTEGER, default_value_type TEXT, default_value_dialect TEXT
);
CREATE INDEX ducklake_column_table ON ducklake_column (table_id);
CREATE TABLE ducklake_table_stats (
    table_id INTEGER PRIMARY KEY, record_count INTEGER, next_row_id INTEGER, file_size_bytes INTEGER
);
CREATE TABLE ducklake_table_column_stats (
    table_id INTEGER, column_id INTEGER, contains_null INTEGER, contains_nan INTEGER, min_value TEXT, max_value TEXT,
    extra_stats TEXT
);
CREATE TABLE ducklake_partition_info (
    partition_id INTEGER, table_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER
);
CREATE TABLE ducklake_partition_column (
    partition_id INTEGER, table_id INTEGER, partition_key_index INTEGER, column_id INTEGER, transform TEXT
);
CREATE TABLE ducklake_file_partition_value (
    data_file_id INTEGER, table_id INTEGER, partition_key_index INTEGER, partition_value TEXT
);
CREATE TABLE ducklake_files_scheduled_for_deletion (
    data_file_id INTEGER, path TEXT, path_is_relative INTEGER, schedule_start TEXT
);
CREATE TABLE ducklake_inlined_data_tables (table_id INTEGER, table_name TEXT, schema_version INTEGER);
CREATE TABLE ducklake_column_mapping (mapping_id INTEGER, table_id INTEGER, type TEXT);
CREATE TABLE ducklake_name_mapping (
    mapping_id INTEGER, column_id INTEGER, source_name TEXT, target_field_id INTEGER, parent_column INTEGER,
    is_partition INTEGER
);
CREATE TABLE ducklake_schema_versions (begin_snapshot INTEGER, schema_version INTEGER, table_id INTEGER);
CREATE TABLE ducklake_macro (
    schema_id INTEGER, macro_id INTEGER, macro_name TEXT, begin_snapshot INTEGER, end_snapshot INTEGER
);
CREATE TABLE ducklake_macro_impl (macro_id INTEGER, impl_id INTEGER, dialect TEXT, sql TEXT, type TEXT);
CREATE TABLE ducklake_macro_parameters (
    macro_id INTEGER, impl_id INTEGER, column_id INTEGER, parameter_name TEXT, parameter_type TEXT, default_value TEXT,
    default_value_type TEXT
);
CREATE TABLE ducklake_sort_info (sort_id INTEGER, table_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER);
CREATE TABLE ducklake_sort_expression (
    sort_id INTEGER, table_id INTEGER, sort_key_index INTEGER, expression TEXT, dialect TEXT, sort_direction TEXT,
    null_order TEXT
);
CREATE TABLE segments (  -- readings of one source that are no longer in the table `readings`
    number INTEGER PRIMARY KEY,  -- data_file_id in the catalog
    source INTEGER NOT NULL REFERENCES data_sources (number),
    blob TEXT NOT NULL,  -- key in cloud.blobs
    digest TEXT NOT NULL,  -- SHA-256 of the file
    size INTEGER NOT NULL,  -- of the file in bytes
    count INTEGER NOT NULL,  -- of readings
    characters INTEGER NOT NULL,  -- of the JSON of all readings
    first INTEGER NOT NULL,  -- position of the first reading: `requested` and `number`
    first_number INTEGER NOT NULL,
    last INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    synced INTEGER NOT NULL,  -- of the reading that arrived last
    samples TEXT NOT NULL  -- JSON: times and texts of some readings, for plots of many segments
);
CREATE INDEX segments_last ON segments (source, last, last_number);
CREATE INDEX segments_first ON segments (source, first, first_number);
CREATE INDEX segments_synced ON segments (source, synced);
CREATE INDEX segments_blob ON segments (blob);
CREATE TABLE segment_sums (
    data_file_id INTEGER NOT NULL,
    column_id INTEGER NOT NULL,
    total REAL NOT NULL,
    PRIMARY KEY (data_file_id, column_id)
);
"""

STATISTICS: Final = """
-- A query asks for one column of each file, which may have hundreds.
CREATE INDEX ducklake_file_column_stats_column ON ducklake_file_column_stats (data_file_id, column_id);
DROP INDEX ducklake_file_column_stats_file;
"""
