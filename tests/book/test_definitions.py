"""Which definitions a program uses: read from small packages, by what each mentions."""

import ast

import pytest

from mobpriv.book import definitions


@pytest.fixture
def package(tmp_path):
    """A package of one's own: a mapping of file names to texts, and who uses what of it."""

    def make(files: dict, *cells: str, outside=()) -> set:
        for name, text in files.items():
            path = tmp_path / "p" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        def file(module):
            place = tmp_path.joinpath(*module.split("."))
            return next((f for f in (place / "__init__.py", place.with_suffix(".py")) if f.is_file()), None)

        used = definitions.used(cells, file, lambda path: path.name in outside)
        return {f"{path.relative_to(tmp_path / 'p').as_posix()}:{name}" for (path, name), lines in used.items() if lines}

    return make


GEO = "import math\nR = 6.0\nUNUSED = 1\n\ndef arc(x):\n    return R * x\n\ndef other(x):\n    return UNUSED\n"


def test_a_definition_and_what_it_mentions(package):
    # what is imported and never mentioned does not count; one cell imports and the next uses
    assert package({"geo.py": GEO}, "from p.geo import arc, other\narc(1)") == {"geo.py:arc", "geo.py:R"}
    assert package({"geo.py": GEO}, "from p import geo", "geo.other(2)") == {"geo.py:other", "geo.py:UNUSED"}
    assert "geo.py:" in package({"geo.py": GEO}, "from p import geo\nsolve(geo)")  # handed around it counts as a whole


def test_a_name_that_the_package_hands_on_leads_to_where_it_is_defined(package):
    files = {
        "m/__init__.py": "from p.m.a import A\nfrom p.m.b import B\n",
        "m/a.py": "class A:\n    pass\n",
        "m/b.py": "class B:\n    pass\n",
    }
    assert package(files, "from p.m import A\nA()") == {"m/a.py:A"}
    assert package(files, "import p.m as m\nm.B()") == {"m/b.py:B"}


def test_a_package_handed_around_counts_with_what_it_hands_on(package):
    files = {"m/__init__.py": "from p.m.a import A\n", "m/a.py": "class A:\n    pass\nclass Other:\n    pass\n"}
    assert package(files, "from p import m\nsolve(m)") == {"m/a.py:A"}
    assert package(files, "import p.m\np.m.A()") == {"m/a.py:A"}


def test_through_files_methods_decorators_defaults_and_local_imports(package):
    files = {
        "geo.py": GEO,
        "a.py": (
            "from p.geo import arc\nLIMIT = 3\nSIDE = 4\ndef mark(f):\n    return f\n"
            "class A:\n    @mark\n    def go(self, n=LIMIT):\n        from p.b import late\n        return arc(n) + late()\n"
        ),
        "b.py": "def late():\n    return early()\ndef early():\n    return 1\ndef never():\n    return 2\n",
    }
    expected = {"a.py:A", "a.py:mark", "a.py:LIMIT", "b.py:late", "b.py:early", "geo.py:arc", "geo.py:R"}
    assert package(files, "from p.a import A\nA().go()") == expected


def test_what_a_module_does_on_the_way_counts_with_any_of_its_names(package):
    files = {"a.py": "TABLE = {}\ndef f():\n    return 1\nTABLE.update(x=1)\n"}
    assert package(files, "from p.a import f\nf()") == {"a.py:f", "a.py:TABLE"}
    one, two = (definitions.module(f"def f():\n    return 1\nprint({x})\n") for x in (1, 2))
    assert one.always == two.always == (1,)
    assert one.statements[1] != two.statements[1]


def test_names_bound_in_branches_and_several_times(package):
    bound = "try:\n    import fast\n    HAS = True\nexcept ImportError:\n    HAS = False\nN = 1\nN = 2\n"
    files = {"a.py": f"{bound}\ndef f():\n    return HAS, N\n"}
    assert package(files, "from p.a import f\nf()") == {"a.py:f", "a.py:HAS", "a.py:N"}
    assert len(definitions.module(files["a.py"]).defines["N"]) == 2


def test_files_outside_are_not_followed(package):
    files = {"plot.py": "from p.geo import arc\ndef draw():\n    return arc(1)\n", "geo.py": GEO}
    assert package(files, "from p import plot\nplot.draw()", outside=("plot.py",)) == set()


def test_docstrings_comments_and_layout_do_not_count():
    one = definitions.module('def f(x):\n    """Says."""\n    return x + 1  # why\n')
    two = definitions.module("def f(x):\n\n    return (x +\n      1)\n")
    assert one.statements == two.statements


def test_every_python_writes_a_program_alike():
    """As 3.11 does; from 3.12 on a function has parameters of types, from 3.13 on what is empty is not written."""
    arguments = "arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])"
    written = f"Module(body=[FunctionDef(name='f', args={arguments}, body=[Pass()], decorator_list=[])], type_ignores=[])"
    assert definitions.normal(ast.parse("def f():\n    pass")) == written
