"""The privacy-and-utility report of a fitted model, as an officer can file it."""

from .card import Card, blank_card, registry_record
from .content import filing
from .page import ReportContext, write_report

__all__ = ["Card", "ReportContext", "blank_card", "filing", "registry_record", "write_report"]
