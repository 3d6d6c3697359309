"""Tables, figures and sentences of a classifier's report, from the results store only."""

from faircal.report.classes.figures import class_figures
from faircal.report.classes.tables import class_tables, further_class_tables
from faircal.report.classes.words import class_summary

__all__ = [
    "class_figures",
    "class_summary",
    "class_tables",
    "further_class_tables",
]
