"""A linear model trained by Opacus, from the public one: what a user of that library would write.

Its settings are fixed before any table is seen: 20 epochs, batches of 256, clip 1, step .5 for
classes and .1 for numbers. Its relation is add-or-remove-one, ours replace-one, which is stricter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpadapt.baselines import PublicOnlyClassifier, PublicOnlyRegressor

__all__ = ["OpacusClassifier", "OpacusRegressor", "installed"]

EPOCHS, BATCH, CLIP = 20, 256, 1.0


def installed() -> bool:
    """Whether torch and Opacus are there."""
    try:
        import opacus  # noqa: F401
    except ImportError:
        return False
    return True


class _Opacus:
    step: float

    def __init__(self, epsilon: float, delta: float, noise: str, random_state: int) -> None:
        self.epsilon, self.delta, self.seed = epsilon, delta, random_state

    def fit(self, X: Any, y: Any, private: tuple[Any, Any]) -> _Opacus:
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        self.mean, self.scale = X.mean(axis=0), X.std(axis=0) + 1e-9
        weights, level = self.start(self.rows(X), y)
        model = torch.nn.Linear(weights.shape[1], weights.shape[0])
        with torch.no_grad():
            model.weight.copy_(torch.tensor(weights))
            model.bias.copy_(torch.tensor(level))
        T = torch.tensor(self.rows(private[0]), dtype=torch.float32)
        rows = DataLoader(TensorDataset(T, self.labels(private[1])), batch_size=BATCH)
        descent = torch.optim.SGD(model.parameters(), lr=self.step)
        model, descent, rows = PrivacyEngine(accountant="prv").make_private_with_epsilon(
            module=model,
            optimizer=descent,
            data_loader=rows,
            target_epsilon=self.epsilon,
            target_delta=self.delta,
            epochs=EPOCHS,
            max_grad_norm=CLIP,
        )
        for _ in range(EPOCHS):
            for batch, labels in rows:
                descent.zero_grad()
                self.loss(model(batch), labels).backward()
                descent.step()
        linear = model._module
        self.weights = linear.weight.detach().numpy().astype(float)
        self.level = linear.bias.detach().numpy().astype(float)
        return self

    def rows(self, X: Any) -> Any:
        return (X - self.mean) / self.scale / np.sqrt(X.shape[1])

    def scores(self, X: Any) -> Any:
        return self.rows(X) @ self.weights.T + self.level


class OpacusRegressor(_Opacus):
    """Least squares."""

    step = 0.1

    def start(self, X: Any, y: Any) -> tuple[Any, Any]:
        model = PublicOnlyRegressor().fit(X, y)
        level = model.predict(np.zeros((1, X.shape[1])))
        return (model.predict(np.eye(X.shape[1])) - level)[None, :], level

    def labels(self, y: Any) -> Any:
        import torch

        return torch.tensor(y, dtype=torch.float32)

    def loss(self, scores: Any, labels: Any) -> Any:
        return ((scores[:, 0] - labels) ** 2).mean() / 2

    def predict(self, X: Any) -> Any:
        return self.scores(X)[:, 0]


class OpacusClassifier(_Opacus):
    """Logistic regression."""

    step = 0.5

    def start(self, X: Any, y: Any) -> tuple[Any, Any]:
        model = PublicOnlyClassifier().fit(X, y)
        self.classes = model.classes_
        log_odds = np.log(np.clip(model.predict_proba(np.eye(X.shape[1])), 1e-9, 1))
        level = np.log(np.clip(model.predict_proba(np.zeros((1, X.shape[1]))), 1e-9, 1))[0]
        weights = (log_odds - level).T
        return weights - weights.mean(axis=0), level - level.mean()

    def labels(self, y: Any) -> Any:
        import torch

        return torch.tensor(np.searchsorted(self.classes, y))

    def loss(self, scores: Any, labels: Any) -> Any:
        import torch

        return torch.nn.functional.cross_entropy(scores, labels)

    def predict(self, X: Any) -> Any:
        return self.classes[self.scores(X).argmax(axis=1)]
