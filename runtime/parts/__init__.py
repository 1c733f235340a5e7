"""The parts of machine-server besides resources, with a folder for each part."""
