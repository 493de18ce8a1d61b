"""What a setting costs and gives away: against the functions of the figures, each by itself."""

import numpy as np
import pytest
from dchi_making import halves

from mobpriv.base.estimates import over_draws
from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, prepare
from mobpriv.experiments.dchi_choices import error_share

SAMPLES = draw(prepare(*halves(300)), np.random.default_rng(1), 4)


@pytest.mark.parametrize(("chi", "counts"), [("all", False), ("N5", False), ("F3", True)])
def test_each_number_is_that_of_its_figure(chi, counts):
    protection, epsilons = dchi.protection(chi, counts), (0.3, 2.0)
    found = dchi_choices.measured(SAMPLES, protection, epsilons)
    assert found.plain == pytest.approx(error_share(SAMPLES, protection, epsilons))
    ways = [error_share(SAMPLES, protection, epsilons, "corrected")]
    if chi == "N5":
        ways.append(error_share(SAMPLES, protection, epsilons, "as visited"))
    for k, e in enumerate(epsilons):
        best = min((way[:, k] for way in ways), key=np.mean)
        assert found.corrected[:, k] == pytest.approx(best)
        assert found.nearest[:, k] == pytest.approx(dchi.nearest_rate(SAMPLES, protection, e, "profileGuess"))
        assert found.likeliest[:, k] == pytest.approx(dchi.nearest_rate(SAMPLES, protection, e, "likelihood"))
        place = dchi.read_off_rate(SAMPLES, protection, e) if counts else np.zeros(4)
        assert found.place[:, k] == pytest.approx(place)
        assert found.best_way[:, k].mean() == min(found.plain[:, k].mean(), found.corrected[:, k].mean())
    assert (found.risk >= found.nearest).all()
    assert (found.risk == np.maximum(np.maximum(found.nearest, found.likeliest), found.place)).all()


def test_a_limit_is_kept_by_the_band():
    found = over_draws([0.1] * 18 + [0.5] * 2)
    assert found.value < 0.2
    assert not dchi_choices.keeps(found, 0.2)
    assert dchi_choices.keeps(found, 0.5)
