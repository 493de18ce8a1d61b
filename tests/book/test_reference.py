"""The reference names everything that ``import mobpriv`` gives, with parameters, defaults, units and an example."""

import inspect
import re

import pytest
from docutils.core import publish_doctree
from docutils.nodes import system_message

import mobpriv
from mobpriv.book import reference

PAGE = reference.page()
ENTRIES = dict(re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^###? |\Z)", PAGE))


@pytest.mark.parametrize("name", mobpriv.__all__)
def test_every_public_name_has_its_parameters_and_an_example(name):
    entry, thing = ENTRIES[name], getattr(mobpriv, name)
    assert re.sub(r":\w+:`(\w+)`", r"``\1``", inspect.getdoc(thing).splitlines()[0]) in entry
    assert ">>> " in entry
    assert re.search(r"(?m)^(Source: .*(§|chapter|\d{4}).*\. )?Module: `mobpriv\.[\w.]+`\.$", entry)
    assert "Source: " in entry or name == "load"  # of no paper
    listed = entry.partition("Parameters:")[2].partition("Methods:")[0]
    parameters = re.findall(r"(?m)^- `(\w+)`", listed)
    assert parameters == [p for p in inspect.signature(thing).parameters if not p.endswith("_")]
    if isinstance(thing, type):
        assert f"- `{'rank(anonymous' if hasattr(thing, 'rank') else 'protect(traces'}" in entry


def test_a_parameter_has_its_default_and_the_comment_behind_it():
    assert "- `alpha` = `200.0`: m, distance between two samples\n" in ENTRIES["Promesse"]
    assert (
        "- `near` = `100.0`: m, d_max: largest distance between the centroids of two matching POIs\n" in ENTRIES["poi_privacy"]
    )


def test_the_docstrings_are_valid_rst():
    for block in re.findall(r"(?s)```\{eval-rst\}\n(.*?)\n```", PAGE):
        document = publish_doctree(block, settings_overrides={"report_level": 5})
        assert not [*document.findall(system_message)], block


def test_policies_and_estimates_are_there_and_nothing_private():
    assert {"reidentified", "top_k", "rate", "paired_difference"} <= set(ENTRIES)
    assert not [name for name in ENTRIES if name.startswith("_")]
