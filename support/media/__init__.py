"""Pictures from cameras, people and files, which are decoded in one way everywhere."""
