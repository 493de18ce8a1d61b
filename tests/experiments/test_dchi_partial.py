"""Partial profiles: which POIs leak first, and twins, by hand."""

import numpy as np
from dchi_making import halves

from mobpriv.experiments.dchi import draw, prepare
from mobpriv.experiments.dchi_attacks import order_of_pois, twins

SAMPLES = draw(prepare(*halves(400)), np.random.default_rng(1), 4)


def test_the_most_visited_leak_first():
    number = (SAMPLES.day[2] > 0).sum(axis=0)
    most, least = (order_of_pois(SAMPLES, which).poi_order[2] for which in ("most visited", "least visited"))
    assert sorted(most) == sorted(least) == list(range(29))
    assert number[most].tolist() == sorted(number, reverse=True)
    assert number[least].tolist() == sorted(number)
    assert order_of_pois(SAMPLES, "drawn") is SAMPLES


def test_twins_by_hand():
    known = np.array([[[1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [1, 1]]])
    assert twins(known).tolist() == [2 / 3, 0]
    some = SAMPLES.day[:, :, :3] > 0
    rows = [tuple(row) for row in some[1].tolist()]
    assert twins(some)[1] == sum(rows.count(row) > 1 for row in rows) / 100
