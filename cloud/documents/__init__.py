"""Documents of machines as values: paths, merging, fragments, size and readability. Nothing here uses the database."""
