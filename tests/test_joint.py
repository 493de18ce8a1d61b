"""The setting of "Privacy games": the area, the users, their priors."""

import pytest

from mobpriv import joint


def test_the_city_takes_persons():
    setting = joint.prepare(users=3)
    assert len(setting.users) == 3
    assert all(name.startswith("p") for name in setting.users)
    assert setting.priors.shares.index.tolist() == setting.users
    assert setting.priors.shares.shape == (3, 300)
    assert (setting.grid.width, setting.grid.height) == (15_000, 8_000)
    assert setting.priors.shares.sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    first = setting.users[0]
    assert f"{setting.priors.records['inside'].sum():,} records inside" in setting.selection
    without = joint.prepare(users=2, leave_out=first)
    assert without.users == setting.users[1:]  # the area stays: one user's records do not move it here
    assert without.selection.endswith(f"left out: {first}")


def test_cabs_on_request():
    assert all(name.startswith("c") for name in joint.prepare(users=2, begins="c").users)


def test_unknown_users_are_named():
    with pytest.raises(ValueError, match="leave_out names users that the data set does not have: nobody"):
        joint.prepare(leave_out="nobody")
