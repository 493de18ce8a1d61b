"""A channel as a mechanism on traces."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals

from mobpriv.ground.grid import AreaGrid
from mobpriv.mechanisms import Obfuscation, PersonalisedObfuscation
from mobpriv.traces.table import as_traces

GRID = AreaGrid(45.0, 5.0, 400.0, 100.0, 4, 1)
CHANNEL = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.1, 0.0, 0.9], [0.25] * 4, [0.0, 0.0, 0.0, 1.0]])


def traces_of(cells: dict[str, list[int]]):
    """Per user the cells in which the records lie, one a second, off the centre; -1 lies west of the area, near cell 0."""
    lat, lng = GRID.centres_in_degrees().T
    step = lng[1] - lng[0]
    table = [
        (u, i, lng[0] + (cell + 0.3) * step, f"{u}{i}") for u, user_cells in cells.items() for i, cell in enumerate(user_cells)
    ]
    table = pd.DataFrame(table, columns=["user", "t", "lng", "note"]).assign(lat=lat[0] + 1e-4)
    return as_traces(table.assign(t=pd.to_datetime(table["t"] + 1_450_000_000, unit="s", utc=True)))


def test_records_lie_on_centres_and_keep_the_rest():
    traces = traces_of({"ann": [0, 1, 2], "bob": [3]})
    protected = Obfuscation(CHANNEL, GRID).protect(traces, np.random.default_rng(1))
    centres = {tuple(c) for c in GRID.centres_in_degrees().tolist()}
    assert set(zip(protected["lat"], protected["lng"], strict=True)) <= centres
    pd.testing.assert_frame_equal(protected.drop(columns=["lat", "lng"]), traces.drop(columns=["lat", "lng"]))


def test_a_column_is_the_cell_it_names():
    """Two observables: the channel that always takes the second publishes cell 1."""
    channel = np.tile([0.0, 1.0], (4, 1))
    protected = Obfuscation(channel, GRID, observables=[3, 1]).protect(traces_of({"ann": [0, 3]}), np.random.default_rng(1))
    assert GRID.cells(protected["lat"], protected["lng"]).tolist() == [1, 1]


def test_records_outside_are_left_out_and_counted():
    traces = traces_of({"ann": [0, -1, 1, -1], "bob": [-1], "cat": [2]})
    mechanism = Obfuscation(CHANNEL, GRID)
    protected = mechanism.protect(traces, np.random.default_rng(1))
    assert protected["note"].tolist() == ["ann0", "ann2", "cat0"]
    assert protected["user"].cat.categories.tolist() == ["ann", "cat"]
    left_out = mechanism.left_out(traces)
    assert left_out[["rule", "records", "users", "row"]].to_numpy().tolist() == [["outside the area", 3, 2, 1]]
    assert len(traces) - len(protected) == left_out["records"].sum()
    assert len(mechanism.left_out(traces_of({"ann": [0]}))) == 0


def test_records_outside_as_if_in_the_nearest_cell():
    traces = traces_of({"ann": [-1, 0, 1, 2, 3, 4]})
    mechanism = Obfuscation(np.eye(4), GRID, outside="nearest")  # the identity moves nothing
    assert not mechanism.random
    protected = mechanism.protect(traces, np.random.default_rng(1))
    assert GRID.cells(protected["lat"], protected["lng"]).tolist() == [0, 0, 1, 2, 3, 3]
    assert len(mechanism.left_out(traces)) == 0


def test_the_channel_is_a_copy_that_stays():
    channel = CHANNEL.copy()
    mechanism = Obfuscation(channel, GRID)
    channel[:] = 0
    assert mechanism.channel.tolist() == CHANNEL.tolist()
    with pytest.raises(ValueError, match="read-only"):
        mechanism.channel[0, 0] = 1.0
    assert mechanism.random
    assert repr(mechanism) == "Obfuscation(4 secrets, 4 observables, outside='leave_out')"


class TestOwnObfuscation:
    def test_each_user_has_her_own(self):
        """Ann is always in the last cell, bob stays where he is; eve, all of whose records lie outside, is left out."""
        channels = {"ann": np.tile(np.eye(4)[3], (4, 1)), "bob": np.eye(4), "eve": np.eye(4), "nobody": np.eye(4)}
        traces = traces_of({"ann": [0, -1, 1], "bob": [2, 1], "eve": [-1]})
        protected = PersonalisedObfuscation(channels, GRID).protect(traces, np.random.default_rng(1))
        pd.testing.assert_frame_equal(as_traces(protected), protected)
        assert protected["note"].tolist() == ["ann0", "ann2", "bob0", "bob1"]
        assert GRID.cells(protected["lat"], protected["lng"]).tolist() == [3, 3, 2, 1]
        assert protected["user"].cat.categories.tolist() == ["ann", "bob"]

    def test_one_user_is_an_obfuscation_with_a_generator_of_her_own(self):
        traces = traces_of({"ann": [0, 1, 2, 3] * 20})
        protected = PersonalisedObfuscation({"ann": CHANNEL}, GRID).protect(traces, np.random.default_rng(4))
        (child,) = np.random.default_rng(4).spawn(1)
        pd.testing.assert_frame_equal(protected, Obfuscation(CHANNEL, GRID).protect(traces, child))

    def test_who_has_no_channel_is_not_published(self):
        mechanism = PersonalisedObfuscation({"ann": CHANNEL}, GRID)
        assert repr(mechanism) == "PersonalisedObfuscation(1 users, 4 secrets)"
        with pytest.raises(ValueError, match="no channel for 2 of 3 users: the first is bob"):
            mechanism.protect(traces_of({"ann": [0], "bob": [1], "cat": [2]}), np.random.default_rng(1))

    def test_the_channels_stay(self):
        channels = {"ann": CHANNEL.copy()}
        mechanism = PersonalisedObfuscation(channels, GRID)
        channels["ann"][:] = 0
        channels["bob"] = CHANNEL
        assert list(mechanism.channels) == ["ann"]
        assert mechanism.channels["ann"].tolist() == CHANNEL.tolist()
        with pytest.raises(TypeError):
            mechanism.channels["ann"] = CHANNEL


def off(s, o, value):
    channel = CHANNEL.copy()
    channel[s, o] = value
    return channel


test_what_is_no_mechanism = refusals(
    ({"channel": CHANNEL[:3]}, r"a row for each of the 4 cells .* a column for each of the 4 observables \(got \(3, 4\)\)"),
    ({"channel": CHANNEL[:, :3]}, r"\(got \(4, 3\)\)"),
    ({"channel": CHANNEL[:, :0], "observables": []}, r"0 observables \(got \(4, 0\)\)"),
    ({"channel": off(2, 1, np.nan)}, r"channel must be finite \(got nan at \[2, 1\]\)"),
    ({"channel": off(0, 3, -0.1)}, r"must be not negative \(got -0.1 at secret 0, observable 3\)"),
    ({"channel": off(1, 0, 0.5)}, r"row 1 of the channel must sum to 1 within 1e-09 \(got 1.5\)"),
    ({"observables": [0, 1, 2, 4]}, r"cells of this area run from 0 to 3 \(got 4\)"),
    ({"outside": "drop"}, r'"leave_out" or "nearest" \(got \'drop\'\)'),
    call=lambda wrong: Obfuscation(**{"channel": CHANNEL, "grid": GRID, **wrong}),
)
