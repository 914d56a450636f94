"""The closed tables: every mechanism and every event that was reviewed, by dotted name.

A session plans with these mechanisms and no others, and a guarantee or a ledger holds these events
and no others: a method can add a statistic, never a door. They stand here by name, below
``dpadapt``, so that the core needs none of them: whoever has made one has imported it, and an event
that is read back is imported then. Those of :mod:`dpadapt.papers` obey the same rules of proof and
review as those of :mod:`dpadapt.privacy`. Basic events stand in :mod:`.events`.
"""

DOORS = frozenset(
    {
        "privacy.mechanisms.gaussian.Gaussian",
        "privacy.mechanisms.gaussian.GaussianInside",
        "privacy.mechanisms.gaussian.GaussianPool",
        "privacy.mechanisms.gaussian.SymmetricGaussian",
        "privacy.mechanisms.path.GaussianPath",
        "privacy.mechanisms.purse.GaussianPurse",
        # the papers'
        "papers.hybrid.doors.descent.DrawnDescent",
        "papers.hybrid.doors.draws.LearnOnDraws",
        "papers.hybrid.doors.parity.Parity",
        "papers.kernels.machines.PINPConstants",
        "papers.kernels.machines.SparseVectorConstants",
        "papers.selection.exponential.Exponential",
        "papers.selection.exponential.ExponentialOnBall",
        "papers.selection.laplace.Laplace",
        "papers.selection.laplace.LaplaceMin",
        "papers.selection.random_stopping.RandomStopping",
        "papers.mixing.filtered.FilteredGaussian",
        "privacy.mechanisms.randomised_response.RandomisedResponse",
    }
)
# files of the papers that handle private rows: these mechanisms, and statistics that they need; a
# session tells the errors that they raise as it tells those of the core
READERS = frozenset(
    {
        "papers/hybrid/doors/descent.py",
        "papers/hybrid/doors/draws.py",
        "papers/hybrid/doors/parity.py",
        "papers/hybrid/doors/weights.py",
        "papers/kernels/machines.py",
        "papers/mixing/filtered.py",
        "papers/selection/exponential.py",
        "papers/selection/laplace.py",
        "papers/selection/random_stopping.py",
    }
)
# what states a bound for one replaced row that adds up over several (privacy/rows/groups.py)
FOR_PEOPLE = frozenset(
    {
        "papers.selection.exponential.Exponential",
        "privacy.mechanisms.gaussian.Gaussian",
        "privacy.mechanisms.gaussian.GaussianPool",
        "privacy.mechanisms.gaussian.SymmetricGaussian",
        "papers.selection.laplace.Laplace",
        "papers.selection.laplace.LaplaceMin",
        "privacy.mechanisms.purse.GaussianPurse",
    }
)
# events that stand with their mechanism, by kind
EVENTS = {
    "draws": "papers.hybrid.doors.draws.DrawsEvent",
    "one-draw-gaussian": "papers.hybrid.doors.one_draw.OneDrawGaussianEvent",
    "poisson-gaussian": "papers.mixing.poisson.PoissonGaussianEvent",
    "random-stopping": "papers.selection.random_stopping.RandomStoppingEvent",
    "updates": "papers.kernels.machines.UpdatesEvent",
}
