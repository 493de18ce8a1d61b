"""Slow twins of mobpriv.channels.priors, written from the definitions: the truth the fast routines must equal."""

import math

from mobpriv.ground.grid import AreaGrid


def counts(rows, grid, visits=False):
    """``rows``: (lat, lng) of one user's records in order. Returns cell -> number of records, or of visits."""
    found, before = {}, None
    for lat, lng in rows:
        cell = int(grid.cells([lat], [lng])[0])
        if cell >= 0 and not (visits and cell == before):
            found[cell] = found.get(cell, 0) + 1
        before = cell
    return found


def prior(rows, grid, visits=False):
    found = counts(rows, grid, visits)
    return [found.get(cell, 0) / sum(found.values()) for cell in range(grid.size)]


def smoothed(prior, grid, width, weight):
    centres, size = grid.centres().tolist(), grid.size
    out = [(1 - weight) * p for p in prior]
    for s in range(size):
        d = [math.dist(centres[s], centres[t]) for t in range(size)]
        kernel = [math.exp(-(x**2) / (2 * width**2)) if x <= 3 * width + 1e-6 else 0.0 for x in d]
        for t in range(size):
            out[t] += weight * prior[s] * kernel[t] / sum(kernel)
    return out


def entropy(prior):
    return -sum(p * math.log2(p) for p in prior if p)


def better_informed(prior, weight, places):
    top = sorted(range(len(prior)), key=lambda cell: (-prior[cell], cell))[:places]
    total = sum(prior[cell] for cell in top)
    return [(1 - weight) * p + (weight * p / total if cell in top else 0.0) for cell, p in enumerate(prior)]


def most_records(rows, width, height, columns, n_rows, south_edges, west_steps):
    """The most records that an area holds whose southern edge (degrees) and western step are among those given."""
    most = 0
    for south in south_edges:
        middle = AreaGrid(south, 0.0, width, height, columns, n_rows)
        degrees = float(middle.bounds([0])[0, 3])  # width of a column
        for step in west_steps(degrees):
            grid = AreaGrid(south, step * degrees, width, height, columns, n_rows)
            most = max(most, sum(grid.cells([lat for lat, _ in rows], [lng for _, lng in rows]) >= 0))
    return most
