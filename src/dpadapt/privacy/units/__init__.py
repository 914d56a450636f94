"""Read if used: people with several rows, whose rows are protected together; a sample as two."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .parts import hold_out

__all__ = ["hold_out"]


def __getattr__(name: str) -> Any:
    """Import what stands above the core only when it is asked for."""
    if name == "hold_out":
        return import_module(".parts", __name__).hold_out
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
