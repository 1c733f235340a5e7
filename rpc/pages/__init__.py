"""What every page for people stands on: style, static files, protecting headers, words, drawings of graphs."""
