"""Individual call profiles (PRIMULE): in memory, from files by DuckDB, on a cluster by Dask; the Sociometer that labels them."""
