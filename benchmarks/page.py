"""``docs/benchmarks.md`` and its picture, from the kept figures alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.disturbance import MOST as MOST_OTHERS
from benchmarks.figure import Figure
from benchmarks.kept import MOST_LOSS, Part
from benchmarks.parts import PARTS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
GPU = DOCS / "benchmarks-gpu.json"
PICTURE = DOCS / "images" / "benchmark-growth.png"

#: What the picture shows, for those who can't see it.
_GROWTH = (
    "Four panels: seconds of K-means, pair scores and a fit against images, dimension, clusters "
    "and pairs, on logarithmic axes"
)

_HEAD = f"""\
# Benchmarks

Written by `python -m benchmarks --accept` from `benchmarks/results.json`; change neither by hand.

Ours and the alternative are measured in turn in one run, after a call that does not count, and the
shortest of several runs counts. The figures are ratios, shares of what the machine can do at best,
or exponents of growth; seconds and memory stand beside them and are those of one machine. A share
above 1 is work that was not done: bounds or a cache made it unnecessary. **Bold**
figures are guarded: `make bench` measures them again and fails where one is worse by more than
{MOST_LOSS:.0%}. A copy's bandwidth is the bytes that it reads a second; it writes as many.

Alternatives that have threads are timed with all and with one; the shorter time counts. Where
others use more than {MOST_OTHERS:.0%} of the processors meanwhile, nothing is judged or kept:
that slows the alternatives' threads more than ours, and the ratios would flatter us.

Figures of a GPU, at the end, are made by `benchmarks/gpu.py` and kept in
`docs/benchmarks-gpu.json`.
"""


def page(kept: Mapping[str, Part]) -> str:
    """Return the whole page, Markdown."""
    if not kept:
        return f"{_HEAD}\nNo figures were accepted yet.\n"
    known = [*PARTS, *(name for name in kept if name not in PARTS)]
    sections = [_goals(kept)]
    sections += [_section(name, kept[name]) for name in known if name in kept]
    sections += [_on_a_gpu(json.loads(GPU.read_text(encoding="utf-8")))] if GPU.exists() else []
    return "\n".join([_HEAD, *sections])


def _goals(kept: Mapping[str, Part]) -> str:
    figures = [f for part in kept.values() for f in part.figures if f.goal is not None]
    met = sum(bool(f.met) for f in figures)
    lines = [f"Goals met: {met} of {len(figures)}.", ""]
    lines += [
        f"- missed: {figure.what.strip()} (`{name}`): {figure.shown}, wanted {figure.wanted}"
        for name, part in kept.items()
        for figure in part.figures
        if figure.met is False
    ]
    return "\n".join(lines if lines[-1] == "" else [*lines, ""])


def _section(name: str, part: Part) -> str:
    about = PARTS[name].about if name in PARTS else name
    lines = [
        f"## {about}",
        "",
        f"`{part.command}`, {part.date}, {_machine(part)}",
        "",
        "| what | figure | goal | |",
        "| --- | --- | --- | --- |",
        *map(_row, part.figures),
        "",
    ]
    if any(figure.points for figure in part.figures):
        lines += [f"![{_GROWTH}]({PICTURE.relative_to(DOCS)})", ""]
    return "\n".join(lines)


def _on_a_gpu(told: Mapping[str, Any]) -> str:
    """Return what ``benchmarks/gpu.py`` measured, as a section."""
    machine = ", ".join(f"{name} {number}" for name, number in told["machine"].items())
    return "\n".join(
        [
            "## On a GPU",
            "",
            f"`{told['command']}`; {machine}.",
            "Pair scores only read, and each row more than once: they can be above a copy, which",
            "also writes. Goals: half of the copy's bandwidth or better, K-means under 50 ms.",
            "",
            "| what | figure |",
            "| --- | --- |",
            *(f"| {what.strip()} | {figure} |" for what, figure in told["rows"]),
            "",
        ]
    )


def _row(figure: Figure) -> str:
    shown = f"**{figure.shown}**" if figure.guarded else figure.shown
    met = {True: "met", False: "missed", None: ""}[figure.met]
    what = figure.what.strip().replace("|", "\\|")
    return f"| {what} | {shown} | {figure.wanted} | {met} |"


def _machine(part: Part) -> str:
    told = part.machine or {}
    packages = ", ".join(f"{name} {number}" for name, number in told.get("versions", {}).items())
    return (
        f"{told.get('cpu')}, {told.get('cores')} cores, {told.get('memory_gib')} GiB, "
        f"others used {told.get('others', 0):.1%} of the processors; "
        f"Python {told.get('python')}, {packages}"
    )


def _short(size: float) -> str:
    """Return a size as a tick shows it.

    Examples
    --------
    >>> _short(64.0), _short(64_000.0), _short(3_200_000.0)
    ('64', '64k', '3.2M')
    """
    for unit, sign in ((1e6, "M"), (1e3, "k")):
        if size >= 10 * unit or (size >= unit and sign == "M"):
            return f"{size / unit:g}{sign}"
    return f"{size:g}"


def draw(figures: Iterable[Figure], path: Path = PICTURE) -> None:
    """Draw the growth curves, one panel for what grows; needs the extra ``figures``."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    panels: dict[str, list[tuple[str, Figure]]] = {}
    for figure in figures:
        if figure.points:
            what, over = figure.name.split(" over ")
            panels.setdefault(over, []).append((what, figure))
    if not panels:
        return
    names = list(dict.fromkeys(what for curves in panels.values() for what, _ in curves))
    drawn, axes = plt.subplots(-(-len(panels) // 2), 2, figsize=(8.5, 6.4), squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for ax, (over, curves) in zip(axes.flat, panels.items(), strict=False):
        for what, figure in curves:
            sizes, seconds = zip(*figure.points, strict=True)
            (line,) = ax.loglog(sizes, seconds, marker="o", color=f"C{names.index(what)}")
            place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(f"{figure.value:.2f}", figure.points[-1], color=line.get_color(), **place)
        widest = max((figure.points for _, figure in curves), key=lambda points: points[-1][0])
        ax.set_xticks([size for size, _ in widest], [_short(size) for size, _ in widest])
        ax.minorticks_off()
        ax.margins(x=0.18)
        ax.set(xlabel=over, ylabel="seconds")
        ax.grid(visible=True, alpha=0.3)
    lines = [plt.Line2D([], [], marker="o", color=f"C{i}") for i in range(len(names))]
    drawn.legend(lines, names, loc="upper center", ncols=len(names), title="exponents at the ends")
    drawn.tight_layout(rect=(0, 0, 1, 0.92))
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=120)
    plt.close(drawn)
