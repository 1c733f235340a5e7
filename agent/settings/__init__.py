"""Settings of machine-agent: their records, and how documents are read to them. Pure."""
