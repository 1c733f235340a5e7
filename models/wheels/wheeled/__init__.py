"""Base `wheeled`: two rows of wheels, each wheel with a motor."""
