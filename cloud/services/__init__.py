"""The published services of the cloud: one class for each noun, over the aggregates."""
