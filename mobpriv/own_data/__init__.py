"""Answers about a table of one's own: protect it."""
