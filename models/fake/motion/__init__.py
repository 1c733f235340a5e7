"""A simulated motion service, which moves nothing."""
