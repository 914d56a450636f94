"""The errors of model folders."""

__all__ = ["ModelExistsError", "ModelFolderError"]


class ModelFolderError(ValueError):
    """A model folder cannot be written, or is not what it says."""


class ModelExistsError(ModelFolderError):
    """There is a model folder already."""
