"""The page of public names is what the docstrings make it."""

import dpadapt
from tools.api import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.api"


def test_every_name_of_the_front_door_has_a_signature_and_a_summary():
    parts = {part.split("\n")[0]: part for part in page().split("\n### ")[1:]}
    for name in dpadapt.__all__:
        lines = [line for line in parts[name].split("\n")[1:] if line]
        assert lines[0].startswith(f"    {name}")
        assert len(lines[1]) > 20, name


def test_parameters_and_methods_are_told():
    part = page().split("\n### AutoRegressor\n")[1].split("\n### ")[0]
    assert "| `epsilon, delta` | float | The privacy budget of one fit." in part
    assert "- `predict(X)`: " in part
    assert "- `fit(X, y, *, private=None, groups=None)`: " in part
