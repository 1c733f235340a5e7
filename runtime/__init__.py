"""machine-server and the `machine` command: resources as nodes of one graph, served over RPC and as pages."""
