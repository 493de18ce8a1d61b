"""Profiles of visits (dχ): how often, or whether, a user called at each antenna or POI; their affinity; what a statistician learns."""
