"""Labelling of the pictures of a dataset: labels to choose from, annotations, queries."""
