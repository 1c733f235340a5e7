"""Implementation of the subcommands of machine-cloud."""
