"""The table of GPS records, and what is computed from it: heat maps, stays, POIs, Markov chains, areas, sub-traces."""
