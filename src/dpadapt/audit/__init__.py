"""Attacks on one's own models: what a guarantee forbids, measured.

For the owner of the data. What an attack returns depends on private rows and is not protected:
it must not be published where the rows must not be.
"""

from ._attack_figure import draw_attack
from .combinations import combinations
from .hostile import Combination, hostile_pairs, replay_combination
from .many_runs import many_runs_audit
from .membership import (
    AttackResult,
    advantage_bound,
    auc_bound,
    gaussian_advantage_bound,
    gaussian_auc_bound,
    membership_attack,
)
from .one_run import (
    Canaries,
    Found,
    epsilon_from_guesses,
    mu_from_guesses,
    one_run_audit,
)
from .replay import Moved, Replay, replay
from .result import AuditResult, draw_audit
from .support import SupportResult, compare_supports, support_audit

__all__ = [
    "AttackResult",
    "AuditResult",
    "Canaries",
    "Combination",
    "Found",
    "Moved",
    "Replay",
    "SupportResult",
    "advantage_bound",
    "auc_bound",
    "combinations",
    "compare_supports",
    "draw_attack",
    "draw_audit",
    "epsilon_from_guesses",
    "gaussian_advantage_bound",
    "gaussian_auc_bound",
    "hostile_pairs",
    "many_runs_audit",
    "membership_attack",
    "mu_from_guesses",
    "one_run_audit",
    "replay",
    "replay_combination",
    "support_audit",
]
