"""Argument checks: what passes comes back plain, what does not is named in the message."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpadapt import _validate

NOT_NUMBERS = [math.nan, math.inf, -math.inf, True, False, "1", None, [1.0], 1j, np.ones(2)]


@pytest.mark.parametrize(
    "value", [1, 0.5, 5e-324, 1e308, np.float32(0.5), np.int64(3), Fraction(1, 3)]
)
def test_positive_passes_as_a_float(value):
    result = _validate.positive("radius", value)
    assert type(result) is float
    assert result == float(value)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, -1e-300, *NOT_NUMBERS])
def test_positive_names_the_argument(value):
    with pytest.raises(
        ValueError, match=r"^radius must be a positive, finite number; got "
    ) as info:
        _validate.positive("radius", value)
    assert str(info.value).endswith(f"{value!r}.")


@pytest.mark.parametrize("value", [0, 0.0, 2, 1e-320])
def test_non_negative_passes(value):
    assert _validate.non_negative("sensitivity", value) == value


@pytest.mark.parametrize("value", [-1, -1e-320, *NOT_NUMBERS])
def test_non_negative_names_the_argument(value):
    with pytest.raises(ValueError, match=r"^sensitivity must be a finite number, zero or more"):
        _validate.non_negative("sensitivity", value)


@pytest.mark.parametrize("value", [0, -1.0, *NOT_NUMBERS])
def test_epsilon_says_what_to_do(value):
    with pytest.raises(
        ValueError, match=r"^epsilon must be a positive.*1.0 is a common choice"
    ) as info:
        _validate.epsilon(value)
    assert info.value.__suppress_context__  # one message, not two
    assert _validate.epsilon(3) == 3.0


@pytest.mark.parametrize("value", [1, 1.0, 1.5, -1e-9, *NOT_NUMBERS])
@pytest.mark.parametrize("allow_zero", [True, False])
def test_delta_says_what_to_do(value, allow_zero):
    with pytest.raises(ValueError, match=r"^delta must lie strictly between 0 and 1.*1e-6"):
        _validate.delta(value, allow_zero=allow_zero)


def test_delta_zero_only_where_allowed():
    assert _validate.delta(0, allow_zero=True) == 0.0
    with pytest.raises(ValueError, match=r"^delta must"):
        _validate.delta(0)
    assert _validate.delta(np.float64(1e-12)) == 1e-12


@pytest.mark.parametrize("value", [0, -3, 1.0, 2.5, *NOT_NUMBERS])
def test_count_names_the_argument(value):
    with pytest.raises(ValueError, match=r"^steps must be a whole number, 1 or more; got "):
        _validate.count("steps", value)


def test_count_passes_as_an_int():
    assert type(_validate.count("steps", np.int32(4))) is int
    assert _validate.count("steps", 0, least=0) == 0
    with pytest.raises(ValueError, match=r"^steps must be a whole number, 5 or more; got 4"):
        _validate.count("steps", 4, least=5)


@pytest.mark.parametrize("value", [0, 1, 1.0, -0.5, 2, *NOT_NUMBERS])
def test_fraction_names_the_argument(value):
    with pytest.raises(ValueError, match=r"^rate must lie strictly between 0 and 1; got "):
        _validate.fraction("rate", value)


def test_fraction_passes():
    assert _validate.fraction("rate", Fraction(1, 4)) == 0.25


def test_choice_lists_what_is_allowed():
    assert _validate.choice("noise", "secure", ("secure", "seeded")) == "secure"
    for value in ("Secure", "", None, 1):
        with pytest.raises(ValueError, match=r"^noise must be one of 'secure', 'seeded'; got "):
            _validate.choice("noise", value, ("secure", "seeded"))
