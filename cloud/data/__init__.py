"""What machines have captured: readings, files with tags and boxes, datasets."""
