"""Jobs: scheduled calls of resource methods."""
