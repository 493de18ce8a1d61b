"""The embedded data set: a synthetic coastal city with commuters and cabs, where the true stays are known.

``python -m mobpriv.datasets.city FOLDER`` writes it. One seed determines everything, and each user has a child of it: a user's
records do not depend on the other users made. We fitted nothing to the data sets of the papers or to their results. The
parameters come from the models cited in :mod:`.people` and from round numbers of everyday life.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.datasets.city.cabs import fleet, shifts
from mobpriv.datasets.city.people import diary, households
from mobpriv.datasets.city.places import City, make_places
from mobpriv.datasets.city.points_of_interest import shops
from mobpriv.datasets.city.recording import habits, measured, times_of_cab, times_of_phone
from mobpriv.datasets.city.streets import Streets, as_geojson, degrees, make_streets
from mobpriv.datasets.city.travel import Track
from mobpriv.traces.table import Traces, as_traces

SEED = 20_240_902
START = pd.Timestamp("2024-09-02", tz="UTC")  # a Monday
COMMUTERS, CABS, DAYS = 120, 75, 30
DECIMALS = 5  # of a degree: 1.1 m
CAB_NOISE = 5.0  # m
SHORTEST_STAY = 300  # s: a shorter one is a stop, not a stay


class Made(NamedTuple):
    traces: Traces
    stays: pd.DataFrame  # user, start, end, lat, lng, role: where users truly were for 5 minutes or more, recorded or not
    users: pd.DataFrame  # user, kind and true attributes
    streets: str  # GeoJSON


def make_city(
    commuters: int = COMMUTERS, cabs: int = CABS, days: int = DAYS, seed: int = SEED, only: list[str] | None = None
) -> Made:
    """The city of ``seed``; ``only`` restricts the records to some of its users."""
    ground_rng, place_rng, home_rng, fleet_rng, user_rng = np.random.default_rng(seed).spawn(5)
    streets = make_streets(ground_rng)
    city = make_places(streets, commuters, place_rng)
    people, cars = households(commuters, city, home_rng), fleet(cabs, city, fleet_rng)
    children = user_rng.spawn(commuters + cabs)
    records, stays, users = [], [], []
    for k, rng in enumerate(children):
        name = f"p{k + 1:03d}" if k < commuters else f"c{k - commuters + 1:03d}"
        if only is not None and name not in only:
            continue
        if k < commuters:
            track, t, noise, about = _commuter(people[k], city, streets, days, rng)
        else:
            track, t, noise, about = _cab(cars[k - commuters], city, streets, days, rng)
        x, y = measured(track.path(), t, noise, rng)
        lat, lng = degrees(x, y)
        records.append(pd.DataFrame({"user": name, "t": t, "lat": lat.round(DECIMALS), "lng": lng.round(DECIMALS)}))
        stays.append(_stays(name, track, days))
        users.append({"user": name, **about})
    records = pd.concat(records)
    traces = as_traces(records.assign(t=START + pd.to_timedelta(records["t"].astype(int), unit="s")))
    return Made(traces, pd.concat(stays, ignore_index=True), _users(users), as_geojson(streets))


def city_points(commuters: int = COMMUTERS, seed: int = SEED) -> pd.DataFrame:
    """Points of interest of the city of ``seed``: lat, lng and kind ("public place" or "shop"), generated at each call.

    About fifty a km² in built-up areas, as in OpenStreetMap and San Francisco's open data.
    """
    ground_rng, place_rng, *_, shop_rng = np.random.default_rng(seed).spawn(6)  # the first five are those of make_city
    streets = make_streets(ground_rng)
    return shops(streets, make_places(streets, commuters, place_rng).public, shop_rng)


def _commuter(person: dict, city: City, streets: Streets, days: int, rng) -> tuple[Track, np.ndarray, float, dict]:
    habit = habits(rng, days)
    track = diary(person, city, streets, days, rng)
    works = person["occupation"] != "at home"
    about = {
        "kind": "commuter",
        "occupation": person["occupation"],
        "home": f"home {person['home']}",
        "home_at": (city.homes.x[person["home"]], city.homes.y[person["home"]]),
        "work": f"workplace {person['work']}" if works else None,
        "work_at": (city.workplaces.x[person["work"]], city.workplaces.y[person["work"]]) if works else (np.nan, np.nan),
        "on_at_night": habit["nights"],
    }
    return track, times_of_phone(track, habit, days, rng), habit["noise"], about


def _cab(cab: dict, city: City, streets: Streets, days: int, rng) -> tuple[Track, np.ndarray, float, dict]:
    track, on = shifts(cab, city, streets, days, rng)
    about = {
        "kind": "cab",
        "occupation": f"{cab['shift']} shift",
        "home": f"garage {cab['garage']}",
        "home_at": (city.garages.x[cab["garage"]], city.garages.y[cab["garage"]]),
        "work": None,
        "work_at": (np.nan, np.nan),
        "on_at_night": False,
    }
    return track, times_of_cab(on, days, rng), CAB_NOISE, about


def _users(users: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(users)
    for place in ("home", "work"):
        at = table.columns.get_loc(f"{place}_at")
        lat, lng = degrees(*np.array(table.pop(f"{place}_at").tolist()).T)
        table.insert(at, f"{place}_lat", lat)
        table.insert(at + 1, f"{place}_lng", lng)
    return table


def _stays(name: str, track: Track, days: int) -> pd.DataFrame:
    table = pd.DataFrame(track.stays, columns=["start", "end", "x", "y", "role"])
    table[["start", "end"]] = table[["start", "end"]].clip(upper=days * 86_400).round().astype("int64")
    table = table[table["end"] - table["start"] >= SHORTEST_STAY]
    lat, lng = degrees(table.pop("x"), table.pop("y"))
    for c in ("start", "end"):
        table[c] = (START + pd.to_timedelta(table[c], unit="s")).dt.as_unit("ms")
    table.insert(0, "user", name)
    table.insert(3, "lat", np.round(lat, DECIMALS))
    table.insert(4, "lng", np.round(lng, DECIMALS))
    return table.reset_index(drop=True)


def write_city(folder, made: Made) -> list[Path]:
    """Write ``city.parquet``, ``city_stays.parquet``, ``city_users.parquet`` and ``city_streets.geojson`` to ``folder``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # decimals, as integers and differences: a third of the size of floating-point numbers
    columns = {"user": _text(made.traces["user"]).dictionary_encode(), "t": _seconds(made.traces["t"])}
    _write(folder / "city.parquet", pa.table(columns | {c: _decimal(made.traces[c]) for c in ("lat", "lng")}))
    stays = {"user": _text(made.stays["user"]), **{c: _seconds(made.stays[c]) for c in ("start", "end")}}
    stays |= {c: _decimal(made.stays[c]) for c in ("lat", "lng")} | {"role": _text(made.stays["role"])}
    _write(folder / "city_stays.parquet", pa.table(stays))
    _write(folder / "city_users.parquet", pa.Table.from_pandas(made.users, preserve_index=False).replace_schema_metadata(None))
    (folder / "city_streets.geojson").write_text(made.streets)
    return [folder / f"city{part}" for part in (".parquet", "_stays.parquet", "_users.parquet", "_streets.geojson")]


def _text(names: pd.Series) -> pa.Array:
    return pa.array(names.astype(object), pa.string())


def _seconds(t: pd.Series) -> pa.Array:
    return pa.array(t.dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype("int64"))


def _decimal(degrees: pd.Series) -> pa.Array:
    return pa.array(degrees.to_numpy()).cast(pa.decimal128(8, DECIMALS))


def _write(path: Path, table: pa.Table) -> None:
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)]
    pq.write_table(
        table.replace_schema_metadata({"synthetic": "true"}),
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[c for c in table.column_names if c not in numbers],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        store_decimal_as_integer=True,
    )
