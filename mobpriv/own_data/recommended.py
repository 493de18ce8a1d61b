"""The setting that an assessment recommends for a goal: the one that keeps most, among those that are shown to meet it."""

from collections.abc import Mapping

_IN_PYTHON_ONLY = (
    "HMC",
    "Hybrid-LPPM",
    "Optimal",
    "PULP",
)  # they need the traces that the adversary knows, or choose for each user
_LIMITS = {
    "max_reidentified": ("either", 1),
    "min_coverage": ("coverage", -1),
    "max_distance": ("time", 1),
}  # goal -> quantity, sign


def setting_for(results: Mapping[str, Mapping], goals: Mapping[str, float]) -> str:
    """The name of the setting with the largest area coverage whose whole intervals meet all ``goals`` (``max_reidentified``, ``min_coverage``, ``max_distance`` in m).

    ``results``: of the notebook ``across_traces``, whose verdict on any setting and goal is wrong with a probability of at most 5 %.
    ValueError if no setting is shown to meet the goals.
    """
    names = [name.removeprefix("bound.either.") for name in results if name.startswith("bound.either.")]
    names = [name for name in names if name.partition(" ")[0] not in _IN_PYTHON_ONLY]
    meeting = [name for name in names if all(_meets(results, name, goal, limit) for goal, limit in goals.items())]
    if not meeting:
        raise ValueError(
            f"none of the {len(names)} settings that mobpriv protect can run is shown to meet the goal: choose a weaker goal, or more users"
        )
    return max(meeting, key=lambda name: results[f"bound.coverage.{name}"]["value"])


def _meets(results: Mapping[str, Mapping], name: str, goal: str, limit: float) -> bool:
    quantity, sign = _LIMITS[goal]
    worst = results[f"bound.{quantity}.{name}"]["high" if sign > 0 else "low"]
    return sign * float(str(worst).replace("infinite", "inf")) <= sign * limit
