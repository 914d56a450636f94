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
        "privacy.mechanisms.gaussian.GaussianProcess",
        "privacy.mechanisms.gaussian.SymmetricGaussian",
        "privacy.mechanisms.path.GaussianPath",
        "privacy.mechanisms.purse.GaussianPurse",
        # the papers'
        "privacy.mechanisms.descent.DrawnDescent",
        "privacy.mechanisms.draws.LearnOnDraws",
        "privacy.mechanisms.exponential.Exponential",
        "privacy.mechanisms.exponential.ExponentialOnBall",
        "papers.mixing.filtered.FilteredGaussian",
        "privacy.mechanisms.laplace.Laplace",
        "privacy.mechanisms.laplace.LaplaceMin",
        "privacy.mechanisms.machine_constants.PINPConstants",
        "privacy.mechanisms.machine_constants.SparseVectorConstants",
        "privacy.mechanisms.parity.Parity",
        "privacy.mechanisms.random_stopping.RandomStopping",
        "privacy.mechanisms.randomised_response.RandomisedResponse",
    }
)
# what states a bound for one replaced row that adds up over several (privacy/units/groups.py)
FOR_PEOPLE = frozenset(
    {
        "privacy.mechanisms.exponential.Exponential",
        "privacy.mechanisms.gaussian.Gaussian",
        "privacy.mechanisms.gaussian.GaussianProcess",
        "privacy.mechanisms.gaussian.SymmetricGaussian",
        "privacy.mechanisms.laplace.Laplace",
        "privacy.mechanisms.laplace.LaplaceMin",
        "privacy.mechanisms.purse.GaussianPurse",
    }
)
# events that stand with their mechanism, by kind
EVENTS = {
    "draws": "privacy.mechanisms.draws.DrawsEvent",
    "one-draw-gaussian": "privacy.mechanisms.one_draw.OneDrawGaussianEvent",
    "poisson-gaussian": "papers.mixing.poisson.PoissonGaussianEvent",
    "random-stopping": "privacy.mechanisms.random_stopping.RandomStoppingEvent",
    "updates": "privacy.mechanisms.updates.UpdatesEvent",
}
