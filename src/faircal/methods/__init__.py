"""Methods by name, and how to add one.

A method is a class in one file; importing the file registers it::

    from faircal.methods import Inputs, Method, Needs, Output, register

    @register
    class Doubtful(Method):
        name, title, needs = "doubtful", "Doubtful", Needs()

        def _fit(self, inputs: Inputs) -> None:
            self.share_ = float(inputs.genuine.mean())

        def _apply(self, inputs: Inputs) -> Output:
            return Output(inputs.score, 0 * inputs.score + self.share_)

        def _get_state(self):
            return {"share": self.share_}

        def _set_state(self, state):
            self.share_ = state["share"]

On the command line, ``faircal --plugin doubtful.py benchmark …`` imports it first.
"""

from typing import Any, TypeVar

from faircal._base.errors import ParameterError
from faircal._base.registry import Registry, did_you_mean
from faircal.methods.asnorm import ASNorm
from faircal.methods.base import Claims, Diagnostics, Method, Needs, Output
from faircal.methods.baseline import Baseline
from faircal.methods.clusters import ClusterMethod
from faircal.methods.cohort import CohortFairCal
from faircal.methods.debiasing import AGENDA, PASS, MultiPASS
from faircal.methods.dsn import DSN
from faircal.methods.faircal import FairCal
from faircal.methods.falcon import FALCON
from faircal.methods.fsn import FSN
from faircal.methods.ftc import FTC
from faircal.methods.gst import GST
from faircal.methods.inputs import Fitting, Inputs, Space, declared
from faircal.methods.modelfile import load_method, load_model, save_model
from faircal.methods.oracle import Oracle
from faircal.methods.smooth.method import SmoothFairCal
from faircal.methods.snorm import SNorm

METHODS: Registry[type[Method]] = Registry("method")

M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Make a method known by its `name` (use as a class decorator)."""
    METHODS.register(method.name, method)
    return method


# In the order of the paper's tables, later rivals after its own, ours before the yardstick.
for _method in (
    Baseline,
    AGENDA,
    PASS,
    MultiPASS,
    FTC,
    GST,
    FSN,
    DSN,
    SNorm,
    ASNorm,
    FALCON,
    FairCal,
    SmoothFairCal,
    CohortFairCal,
    Oracle,
):
    register(_method)


def make_method(name: str, **parameters: Any) -> Method:
    """Return an unfitted method by name; an unknown parameter is an error with a hint."""
    method = METHODS[name]
    names = method._get_param_names()
    for parameter in parameters:
        if parameter not in names:
            hint = did_you_mean(parameter, names)
            raise ParameterError(f"method {name} has no parameter {parameter!r}; {hint}")
    return method(**parameters)


def properties() -> list[dict[str, str | bool]]:
    """Return the paper's table of properties, from what the methods declare.

    ``cohort`` is ``required`` or ``optional``, ``extra`` the extra of faircal that a method needs;
    they are empty where it needs none.

    Examples
    --------
    >>> [row["method"] for row in properties() if row["no_attribute_to_apply"] is False]
    ['gst', 'dsn', 'oracle']
    """
    return [
        {
            "method": name,
            "title": method.title,
            "improves_accuracy": method.claims.improves_accuracy,
            "fairly_calibrated": method.claims.fairly_calibrated,
            "predictive_equality": method.claims.predictive_equality,
            "no_attribute_to_fit": not method.needs.groups_to_fit,
            "no_attribute_to_apply": not method.needs.groups_to_apply,
            "no_training": not method.needs.training,
            "cohort": method.needs.cohort or "",
            "extra": method.needs.extra or "",
        }
        for name, method in METHODS.items()
    ]


__all__ = [
    "AGENDA",
    "DSN",
    "FALCON",
    "FSN",
    "FTC",
    "GST",
    "METHODS",
    "PASS",
    "ASNorm",
    "Baseline",
    "Claims",
    "ClusterMethod",
    "CohortFairCal",
    "Diagnostics",
    "FairCal",
    "Fitting",
    "Inputs",
    "Method",
    "MultiPASS",
    "Needs",
    "Oracle",
    "Output",
    "SNorm",
    "SmoothFairCal",
    "Space",
    "declared",
    "load_method",
    "load_model",
    "make_method",
    "properties",
    "register",
    "save_model",
]
