"""Attacks on one's own models: what a guarantee forbids, measured.

For the owner of the data. What an attack returns depends on private rows and is not protected:
it must not be published where the rows must not be.
"""

from .library import combinations
from .membership import (
    AttackResult,
    advantage_bound,
    auc_bound,
    draw_attack,
    gaussian_advantage_bound,
    gaussian_auc_bound,
    membership_attack,
)
from .one_run import (
    Canaries,
    Found,
    epsilon_from_guesses,
    many_runs_audit,
    mu_from_guesses,
    one_run_audit,
)
from .replaying import Combination, Moved, Replay, hostile_pairs, replay, replay_combination
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
