"""The paper's experiment, run again: its tables and claims, and how near a run comes to them."""

from faircal.report.paper.agreement import (
    AGREEMENT,
    AgreementLine,
    DifferenceLine,
    Reproduction,
    reproduction,
    write_reproduction,
)
from faircal.report.paper.claims import Claim
from faircal.report.paper.published import PAPER, Printed, Quantity, check_networks, look_up

__all__ = [
    "AGREEMENT",
    "PAPER",
    "AgreementLine",
    "Claim",
    "DifferenceLine",
    "Printed",
    "Quantity",
    "Reproduction",
    "check_networks",
    "look_up",
    "reproduction",
    "write_reproduction",
]
