"""machine-server: resources as nodes of one graph, served over RPC and as pages."""
