"""From a filled-in form to an answer or to what is wrong with it; live counters in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faircal._base.errors import DataError, ParameterError, StorageError, StorageFullError
from faircal.production.scoring.judging import Judge
from faircal.production.serving.page.answer import model_facts, one_in
from faircal.production.serving.page.form import (
    KINDS,
    SIDES,
    GivenFace,
    PageForm,
    field_of,
    read_share,
)
from faircal.production.serving.service import Service, Vector
from faircal.production.serving.store.records import LONGEST_ID
from faircal.production.serving.verification import Verification


class LiveCounter(NamedTuple):
    """A number of the service that changes."""

    name: str
    title: str
    text: str
    wide: bool = False


def live(service: Service) -> list[LiveCounter]:
    """Return what the service counts now."""
    templates: int | str | None = None
    if service.store is not None:
        try:
            templates = service.store.count()
        except StorageError:
            templates = "–"  # it is away, and nobody can tell
    return counters({**service.status(), "templates": templates})


def counters(status: Mapping[str, Any]) -> list[LiveCounter]:
    """Return the counters of a service's status; what it does not count is left out.

    Examples
    --------
    >>> status = {"pairs": 1600, "same": 400, "outside": 2, "placed": 400}
    >>> for one in counters(status):
    ...     print(f"{one.title}: {one.text}")
    Pairs compared: 1,600
    Decided same: 25 %
    Unlike calibration: 0.5 %
    Monitoring: Off: the model file has no population to hold pairs against.
    """
    pairs, placed = status.get("pairs"), status.get("placed")
    listed = [
        LiveCounter("requests", "Requests", _count(status.get("requests"))),
        LiveCounter("pairs", "Pairs compared", _count(pairs)),
        LiveCounter("same", "Decided same", _share(status.get("same"), pairs)),
        LiveCounter("outside", "Unlike calibration", _share(status.get("outside"), placed)),
        LiveCounter("templates", "Templates", _count(status.get("templates"))),
        LiveCounter("monitor", "Monitoring", _monitoring(status), wide=True),
    ]
    return [one for one in listed if one.text]


def _count(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}"


def _share(part: Any, total: Any) -> str:
    if part is None or total is None:
        return ""
    return f"{100 * part / total:.3g} %" if total else "–"


def _monitoring(status: Mapping[str, Any]) -> str:
    if not status.get("monitored"):
        return "Off: the model file has no population to hold pairs against."
    return str(status.get("monitor") or "On. It has not looked yet.")


#: What is wrong with the whole, and with no field.
WHOLE = ""


@dataclass(frozen=True)
class PageContent:
    """What there is to show.

    Attributes
    ----------
    judge : Judge
        The model in use as it was when the pair was judged.
    said : Verified, optional
    wrong : dict
        By field what is wrong with it.
    status : int
        Of HTTP.
    known : bool
        Whether who asks has a key, where keys are needed; others see neither model nor counters.
    """

    judge: Judge
    said: Verification | None = None
    wrong: dict[str, str] = field(default_factory=dict)
    status: int = 200
    known: bool = True

    def context(self, service: Service, filled: PageForm) -> dict[str, Any]:
        """Return what the template is given, but for the answer."""
        photos = service.takes_pictures
        offered = {"photo": photos, "numbers": True, "name": service.store is not None}
        prior, provenance = self.judge.prior, self.judge.model.about_.provenance
        verdict = service.monitor.verdict if self.known else None
        return {
            "filled": filled,
            "wrong": self.wrong,
            "named": named,
            "kinds": {kind: words for kind, words in KINDS.items() if offered[kind]},
            "photos": photos,
            "most_photo": f"{service.settings.max_picture / 1e6:.0f} MB",
            "dimension": service.in_use.dimension,
            "groups": groups_needed(self.judge),
            "default_prior": one_in(self.judge.calibrated_at if prior is None else prior),
            "keys": service.has_keys,
            "known": self.known,
            "simulated": provenance is not None and provenance.simulated,
            "due": verdict.words if verdict is not None and verdict.due else "",
            "facts": model_facts(self.judge, service.in_use.digest) if self.known else [],
            "counters": live(service) if self.known else [],
        }


class FormErrors(Exception):  # noqa: N818 - found in what people fill in, and shown to them
    """What is wrong, by field."""

    def __init__(self, status: int, **fields: str) -> None:
        super().__init__()
        self.status, self.fields = status, fields


def compare(service: Service, filled: PageForm, who: str) -> PageContent:
    """Judge the pair that was filled in; the page says what is wrong, where something is.

    `who` is the name of whose key it is, for the audit trail.
    """
    judge = service.in_use.judge
    try:
        result = _judged(service, filled, judge, who)
        after = service.in_use  # another model may have come meanwhile
        return PageContent(after.judge if after.digest == result.model else judge, result)
    except FormErrors as wrong:
        return PageContent(judge, None, wrong.fields, wrong.status)
    except StorageError as error:
        status = 507 if isinstance(error, StorageFullError) else 503
        return PageContent(judge, None, {WHOLE: str(error)}, status)
    except (DataError, ParameterError) as error:
        return PageContent(judge, None, {WHOLE: str(error)}, 422)


def _judged(service: Service, filled: PageForm, judge: Judge, who: str) -> Verification:
    faces, wrong = filled.faces(service.takes_pictures)
    prior = None
    try:
        prior = read_share(filled.prior)
    except DataError as error:
        wrong["prior"] = str(error)
    groups = {name: filled.side(name).group or None for name in SIDES}
    if groups_needed(judge):
        missing = [name for name, group in groups.items() if group is None]
        wrong |= {field_of(name, "group"): "say which group it is of" for name in missing}
    vectors = _vectors(service, faces, wrong)
    if wrong:
        raise FormErrors(422, **wrong)
    return service.verify(
        vectors["left"],
        vectors["right"],
        left_group=groups["left"],
        right_group=groups["right"],
        prior=prior,
        key=who,
        left_id=faces["left"].name,
        right_id=faces["right"].name,
    )


def _vectors(
    service: Service, faces: dict[str, GivenFace], wrong: dict[str, str]
) -> dict[str, Vector]:
    """Return an embedding a side; into `wrong` what can't have one."""
    vectors: dict[str, Vector] = {}
    for side, face in faces.items():
        kind = next(kind for kind in KINDS if getattr(face, _PART[kind]) is not None)
        try:
            vectors[side] = _vector(service, face)
            _check_length(service.in_use.dimension, vectors)
        except (DataError, ParameterError) as error:
            wrong[field_of(side, kind)] = str(error)
    return vectors


_PART = {"photo": "photo", "numbers": "vector", "name": "name"}


def _vector(service: Service, face: GivenFace) -> Vector:
    if face.photo is not None:
        return service.embed(face.photo)
    if face.vector is not None:
        return face.vector
    name = face.name or ""
    if service.store is None:
        raise DataError("this service keeps no templates; give an embedding")
    fine = len(name) <= LONGEST_ID and name.isprintable()
    vectors = service.store.vectors([name]) if fine else {}
    if name not in vectors:
        raise DataError("there is no template of this name; enrol it first, or correct the name")
    vector: Vector = vectors[name]
    return vector


def _check_length(expected: int | None, vectors: dict[str, Vector]) -> None:
    """Raise where the last vector is not as long as the model, or the one before it, is."""
    *before, last = vectors.values()
    length = expected or len(before[0] if before else last)
    if len(last) != length:
        raise DataError(
            f"expected {length} numbers, found {len(last)}; "
            + ("use the network the model was made for" if expected else "use the same network")
        )


def groups_needed(judge: Judge) -> str:
    """Return the attribute whose groups must be told with a pair; empty where none."""
    if not judge.model.needs.groups_to_apply:
        return ""
    return str(getattr(judge.model, "attribute_", None) or "group").replace("+", " and ")


def named(name: str) -> str:
    """Say a field as people call it.

    Examples
    --------
    >>> named("left_numbers"), named("prior")
    ('First face', 'Share of genuine pairs')
    """
    side = name.partition("_")[0]
    if side in SIDES:
        return SIDES[side].capitalize()
    return {"prior": "Share of genuine pairs", "key": "API key"}.get(name, "The pair")
