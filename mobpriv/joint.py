"""The setting that the experiments of "Privacy games" (Shokri, PETS 2015, §9) share: the area, the users, their priors."""

from typing import NamedTuple

from mobpriv.datasets import Dataset, load
from mobpriv.grid import AreaGrid
from mobpriv.priors import Priors, densest_area, most_active, priors
from mobpriv.traces import Traces
from mobpriv.traces import rows as records


class Setting(NamedTuple):
    data: Dataset
    traces: Traces  # of everybody
    grid: AreaGrid
    users: list[str]  # the most active first; pages call them 1, 2, …
    priors: Priors  # by maximum likelihood, rows in the order of users
    selection: str  # all of this in words


def prepare(
    dataset: str = "city",
    width_km: float = 15.0,
    height_km: float = 8.0,
    columns: int = 20,
    rows: int = 15,
    users: int = 10,
    begins: str = "",  # of the users' names; "" takes the city's persons, everybody in any other data set
    leave_out: str = "",  # users to leave out, separated by commas
) -> Setting:
    """The densest area of a data set and its most active users, who stand for the paper's "10 randomly selected users"."""
    data = load(dataset)
    traces, unwanted = data.traces, [name.strip() for name in leave_out.split(",") if name.strip()]
    unknown = sorted(set(unwanted) - set(traces["user"].cat.categories))
    if unknown:
        raise ValueError(f"leave_out names users that the data set does not have: {', '.join(unknown)}")
    if unwanted:
        traces = records(traces, ~traces["user"].isin(unwanted).to_numpy())
    if not begins and data.synthetic and data.name == "city":
        begins = "p"  # the paper's users are persons; the city's other half are cabs
    grid = densest_area(traces, 1000 * width_km, 1000 * height_km, columns, rows)
    chosen = most_active(traces, grid, users, begins)
    found = priors(traces, grid, chosen)
    words = (
        f"{users} users with the most records in the densest {width_km:g} × {height_km:g} km, {columns} × {rows} cells; "
        f"{found.records['inside'].sum():,} records inside, {found.records['outside'].sum():,} outside left out"
    )
    words += f"; only users whose name begins with {begins!r}" if begins else ""
    words += f"; left out: {', '.join(unwanted)}" if unwanted else ""
    return Setting(data, traces, grid, chosen, found, words)
