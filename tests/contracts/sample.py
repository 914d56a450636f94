"""What a check needs to know of an estimator: how it is built, and on what it is fitted."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd

from contracts.hostile import NAMES, SECRET_TEXT, SENTINEL
from contracts.search import reachable
from dpadapt import Private


class Sample(ABC):
    """An estimator, the public and the private rows that it is fitted to, what it leaves behind."""

    needs_labels = False  # whether the method reads private labels
    prefix = ""  # how a nested parameter of the private estimator is written
    least_spent = 0.9  # part of epsilon that a fit spends at least
    releases_all = True  # whether a fit makes every release that it charged for
    progress_end: int | None = None  # steps that a progress bar counts; None if it counts rows
    chosen_from = 0  # answers among which chance chooses, if they are few: two may then coincide

    @abstractmethod
    def make(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        noise: Any = "seeded",
        random_state: Any = 0,
        ledger: Any = None,
        **params: Any,
    ) -> Any:
        """Build the estimator, not fitted."""

    def core(self, model: Any) -> Any:
        """Return the part of the model that has the privacy parameters."""
        return model

    def public(self, m: int = 90) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(11)
        X = rng.normal(size=(m, 3))
        return X, X @ [1.0, -2.0, 0.5] + X[:, 0] ** 2 + 0.1 * rng.normal(size=m)

    def rows(self, n: int = 400, seed: int = 0) -> np.ndarray:
        """Private rows."""
        return np.random.default_rng([5, seed]).normal(0.3, 0.8, size=(n, 3))

    def labels(self, rows: np.ndarray, seed: int = 0) -> np.ndarray | None:
        """Private labels, if the method reads them."""
        if not self.needs_labels:
            return None
        noise = np.random.default_rng([6, seed]).normal(size=len(rows))
        return np.nan_to_num(np.asarray(rows, dtype=float)) @ [1.0, -1.0, 0.5] + 0.1 * noise

    def private(self, rows: Any = None, labels: Any = None) -> Private:
        rows = self.rows() if rows is None else rows
        return Private(rows, self.labels(rows) if labels is None else labels)

    def fit(self, model: Any, private: Any = None, X: Any = None, y: Any = None) -> Any:
        """Fit without a word on what is known: user warnings may come, runtime warnings not."""
        public, labels = self.public()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            return model.fit(
                public if X is None else X, labels if y is None else y, private=private
            )

    def answers(self, model: Any) -> np.ndarray:
        """Everything numeric that a fit leaves behind, the guarantee aside."""
        kept = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "guarantee_"}
        floats = [v for _, v in reachable(kept) if isinstance(v, (float, np.floating, np.ndarray))]
        arrays = [
            np.asarray(v, dtype=float).ravel() for v in floats if np.asarray(v).dtype.kind in "f"
        ]
        return np.concatenate([*arrays, self.predictions(model)])

    def predictions(self, model: Any, X: Any = None) -> np.ndarray:
        """What a fitted model answers, as numbers."""
        ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        return np.ravel(ask(self.public()[0] if X is None else X)).astype(float)

    def marked(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows with the sentinel in some cells, and labels likewise."""
        rows = self.rows()
        rows[3, 1] = rows[7, 0] = SENTINEL
        labels = self.labels(rows)
        if labels is not None:
            labels[5] = SENTINEL
        return rows, labels

    def marked_frame(self) -> pd.DataFrame:
        """The same as a data frame in which some cells are text."""
        frame = pd.DataFrame(self.marked()[0], columns=NAMES).astype({NAMES[2]: object})
        frame.iloc[[2, 9], 2] = SECRET_TEXT
        return frame
