"""Tables, figures and pages, from the results store only."""

from faircal.report.cells import Table
from faircal.report.store import LabelledResults, ResultsFolder
from faircal.report.tables import further_tables, main_tables
from faircal.report.writing import make_report, write_report

__all__ = [
    "LabelledResults",
    "ResultsFolder",
    "Table",
    "further_tables",
    "main_tables",
    "make_report",
    "write_report",
]
