"""The one error of model folders."""

__all__ = ["ModelFolderError"]


class ModelFolderError(ValueError):
    """A model folder cannot be written, or is not what it says."""
