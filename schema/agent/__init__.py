"""The section `agent` of the configuration: its records, and how documents are read to them. Pure."""
