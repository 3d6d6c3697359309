"""Tables, figures and pages, from the results store only."""

from faircal.report.page import write_report
from faircal.report.store import Store
from faircal.report.tables import Results, Table, further_tables, main_tables
from faircal.report.writing import write_all

__all__ = [
    "Results",
    "Store",
    "Table",
    "further_tables",
    "main_tables",
    "write_all",
    "write_report",
]
