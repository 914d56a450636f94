"""The errors of model folders."""


class ModelFolderError(ValueError):
    """A model folder cannot be written, or is not what it says."""


class ModelExistsError(ModelFolderError):
    """There is a model folder already."""


class ModelWriteError(ModelFolderError):
    """The disk, or who owns it, does not let a model folder be written."""
