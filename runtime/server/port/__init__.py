"""The RPC port of a machine: listening, authentication, services."""
