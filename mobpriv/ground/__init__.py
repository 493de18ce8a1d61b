"""Metres and degrees, and the cells of a map."""
