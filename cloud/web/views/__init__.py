"""View models of the pages, derived from the results of the services."""
