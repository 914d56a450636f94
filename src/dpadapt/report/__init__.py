"""The privacy-and-utility report of a fitted model."""

from .page import ReportContext, write_report

__all__ = ["ReportContext", "write_report"]
