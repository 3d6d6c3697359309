"""Batches in JSON: lists of embeddings, or of templates' ids, or pairs one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from faircal.data import Groups
from faircal.production.serving import fields
from faircal.production.serving.arrow import too_many
from faircal.production.serving.bodies import only
from faircal.production.serving.loaded import groups_of
from faircal.production.serving.pairs import Side
from faircal.production.serving.problems import unprocessable

_GROUPS = ("left_group", "right_group")


def read_batch(
    found: dict[str, Any], max_pairs: int
) -> tuple[Side, Side, Groups | None, float | None]:
    """Return both sides of the pairs, their groups and the wanted share of genuine pairs.

    Examples
    --------
    >>> left, right, groups, prior = read_batch({"left": [[1, 2]], "right": [[2, 1]]}, 10)
    >>> left.vectors
    array([[1., 2.]], dtype=float32)
    """
    prior = fields.share(found, "prior")
    if "pairs" in found:
        only(found, "pairs", "prior")
        found = _columns(_list(found["pairs"], "pairs", max_pairs))
    else:
        only(found, "left", "right", *_GROUPS, "prior")
    left = _side(_list(found.get("left"), "left", max_pairs), "left")
    right = _side(_list(found.get("right"), "right", max_pairs), "right")
    if len(left.rows) != len(right.rows):
        raise unprocessable(
            f"expected as many left as right, found {len(left.rows)} and {len(right.rows)}",
            "right",
        )
    return left, right, _groups(found, len(left.rows)), prior


def _list(value: Any, where: str, most: int) -> list[Any]:
    if type(value) is not list or not value:
        raise unprocessable("expected a list with an entry for each pair", where)
    if len(value) > most:
        raise too_many(most)
    return value


def _columns(pairs: list[Any]) -> dict[str, Any]:
    for row, pair in enumerate(pairs):
        if type(pair) is not dict:
            raise unprocessable("expected an object with left and right", f"pairs[{row}]")
        only(pair, "left", "right", *_GROUPS)
    found = {name: [pair.get(name) for pair in pairs] for name in ("left", "right")}
    for name in _GROUPS:
        if any(name in pair for pair in pairs):
            found[name] = [pair.get(name) for pair in pairs]
    return found


def _side(values: list[Any], name: str) -> Side:
    """Return one side: all embeddings, or all templates."""
    kinds = {type(value) for value in values}
    rows = np.arange(len(values))
    if kinds <= {dict, str}:
        ids = [value.get("template") if type(value) is dict else value for value in values]
        return Side(
            name, rows, ids=[fields.template_id(v, f"{name}[{i}]") for i, v in enumerate(ids)]
        )
    if kinds != {list}:
        raise unprocessable("expected embeddings, or ids of templates, in all rows of a side", name)
    wide = len(values[0])
    made = [fields.vector(value, f"{name}[{i}]", wide) for i, value in enumerate(values)]
    return Side(name, rows, vectors=np.stack(made))


def _groups(found: dict[str, Any], n: int) -> Groups | None:
    told = [found.get(name) for name in _GROUPS]
    if told[0] is None and told[1] is None:
        return None
    sides: list[list[str | None]] = []
    for name, value in zip(_GROUPS, told, strict=True):
        if type(value) is not list or len(value) != n:
            raise unprocessable("expected a list with a group for each pair", name)
        sides.append([fields.text({name: each}, name) for each in value])
    return groups_of(sides[0], sides[1])
