"""What every other package uses: estimates with intervals, allowed ranges, random numbers, noise, numbers in words, processes."""
