"""The pages of a machine, for browsers and for scrapers of its counters."""
