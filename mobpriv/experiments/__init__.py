"""The settings that the notebooks of one paper or thesis chapter share, in the reader's units; ``days`` serves all of them."""
