"""The parts of machine-server other than resources, with a folder for each part."""
