"""Rare classes: which are found, what finding more costs, and how to choose classes by that."""

from .choice import predict_classes
from .errors import ClassErrors, class_errors

__all__ = ["ClassErrors", "class_errors", "predict_classes"]
