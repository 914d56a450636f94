"""Check that an estimator keeps the promises of a private estimator.

What a fit asks of the noise sources is written on a tape, and the tape of one private sample can be
played to a neighbouring one: then the two fits see the same noisy answers, and what they want to
release may differ by the stated sensitivity, no more.
"""

from .battery import check_private_estimator, parametrize_with_private_checks, private_checks
from .subject import Facts, Subject

__all__ = [
    "Facts",
    "Subject",
    "check_private_estimator",
    "parametrize_with_private_checks",
    "private_checks",
]
