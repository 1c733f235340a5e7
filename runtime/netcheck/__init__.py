"""Looks at the way to the internet: names, connections, what a router does to them, lost packets; with remedies."""
