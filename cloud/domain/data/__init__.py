"""Data captured by machines: readings, files with tags and bounding boxes, datasets."""
