"""`machine cloud train`: training jobs."""
