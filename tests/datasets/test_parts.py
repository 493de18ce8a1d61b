"""Some users of a table are read as if all had been read and the others dropped."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.datasets import lines, load
from mobpriv.datasets.tables import read_part, read_table
from mobpriv.datasets.wanted import Wanted
from mobpriv.experiments.days import chosen_users

T = 1_211_033_530


@st.composite
def texts(draw):
    """Lines of a table: right ones, of users with difficult names, and faulty ones."""
    names = draw(st.lists(st.sampled_from(["a", "b", "ab", "é", '"x,y"', '"q""q"', '"a"', "007", ""]), min_size=1, max_size=30))
    faulty = ["", ",,,,", "a,b", "a,soon,46,6,n", 'a"b,1211033530,46,6,n', f"a,{T},400,6,n", "b,,46,6,n"]
    rows = []
    for k, name in enumerate(names):
        note = draw(st.sampled_from(["n", '"two\nlines"', '""']))
        rows.append(f"{name},{T + k},{46 + k / 100},6.5,{note}")
        if draw(st.booleans()):
            rows.append(draw(st.sampled_from(faulty)))
    return "\n".join(["user,t,lat,lng,note", *rows]) + draw(st.sampled_from(["\n", ""]))


@pytest.mark.parametrize("order", [["user", "t", "lat", "lng", "note"], ["note", "t", "lat", "lng", "user"]])
@given(text=texts(), max_users=st.integers(1, 4), begins=st.sampled_from(["", "a"]), without=st.sampled_from([(), ("a",)]))
def test_a_part_of_a_text_is_what_dropping_the_others_leaves(tmp_path_factory, text, order, max_users, begins, without):
    if order[0] == "note":
        text = text.replace("user,t,lat,lng,note", "note,t,lat,lng,user")
    file = tmp_path_factory.mktemp("part") / "t.csv"
    file.write_text(text)
    wanted = Wanted(max_users, without, begins)
    try:
        full, _ = read_table(file)
    except ValueError:  # nothing in it can be read
        return
    names = set(full["user"].cat.categories)
    part = None
    with suppress(ValueError):
        part = read_part(file, wanted=wanted)
    if part is None:  # no line of the wanted users is a record: refused, as it is for a whole table
        return
    # who has faulty lines only is a user of the file, too
    assert names <= set(part.users)
    chosen = wanted.of(part.users)
    expected = full[full["user"].isin(chosen)]
    read, wanted = (traces[["t", "lat"]].reset_index(drop=True) for traces in (part.traces, expected))
    pd.testing.assert_frame_equal(read, wanted)
    assert part.traces["user"].astype(str).tolist() == expected["user"].astype(str).tolist()


@pytest.mark.parametrize("kind", ["text", "number", "decimal"])
def test_a_part_of_a_parquet_file_is_what_dropping_the_others_leaves(tmp_path, kind):
    rng = np.random.default_rng(3)
    user = rng.integers(0, 12, 500)
    user = {"text": pd.Series(user).map("u{}".format), "number": pd.Series(user), "decimal": pd.Series(user) * 1.0}[kind]
    user = user.mask((rng.random(500) < 0.02) & (np.arange(500) > 200))  # the first of them behind the first groups of rows
    table = pd.DataFrame({"user": user, "t": T + np.arange(500), "lat": 46 + rng.random(500), "lng": 6.5})
    table.to_parquet(tmp_path / "t.parquet", row_group_size=60)
    full, all_left_out = read_table(tmp_path / "t.parquet")
    part = read_part(tmp_path / "t.parquet", wanted=Wanted(3))
    chosen = sorted(full["user"].cat.categories)[:3]
    expected = full[full["user"].isin(chosen)].reset_index(drop=True)
    assert part.traces["t"].tolist() == expected["t"].tolist()
    assert part.users == tuple(sorted(full["user"].cat.categories))
    # nobody's records are reported, at the rows where they stand in the file
    assert part.left_out[["rule", "records", "place"]].equals(all_left_out[["rule", "records", "place"]])


def test_of_a_large_text_so_many_bytes_are_searched(tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_text("user,t,lat,lng\n" + "".join(f"u{k % 7},{T + k},46.5,6.6\n" for k in range(5000)))
    monkeypatch.setattr("mobpriv.datasets.SEARCHED", 20_000)
    data_set = load(file, max_users=2)
    assert data_set.reading == "We search only the first 0.0 GB of the file"
    assert 100 < len(data_set.traces) < 5000 * 2 / 7
    text = lines.open_text(file, ",", 20_000)
    assert not text.complete
    assert bytes(text.data[-1:]) == b"\n"
    assert load(file).reading == ""
    assert load(file).sha256 != data_set.sha256


def test_the_selection_says_whose_records_were_read(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("uid,t,lat,lng\n" + "".join(f"u{k % 9},{T + k},46.5,6.6\n" for k in range(90)))
    data, traces, words = chosen_users(str(file), leave_out="u0", max_users=2)
    assert words.startswith(". We recognise the columns by their names: user = uid, ")
    assert words.endswith(
        ". We leave out the user u0. We use only the 2 users (of 9) whose names come first in alphabetical order"
    )
    assert list(traces["user"].cat.categories) == ["u1", "u2"]
    assert data.names == tuple(f"u{k}" for k in range(9))
    with pytest.raises(ValueError, match="does not have: zz"):
        chosen_users(str(file), leave_out="zz", max_users=2)
    assert (
        chosen_users("city", max_users=3, begins="p")[2]
        == ". We use only the 3 users (of 195) whose names come first in alphabetical order"
    )
