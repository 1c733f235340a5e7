"""The operator's command line: `machine`."""
