"""The tables of call records and of antenna cells, and calls that are simulated from traces."""
