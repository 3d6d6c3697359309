"""``docs/study-uncertainty.md``, from the kept cells alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from studies.uncertainty.part import Kept, Part, key
from studies.uncertainty.parts import PARTS

PAGE = "study-uncertainty.md"
_HEAD = """\
# How sure are we? A study of intervals and promises

Written by `python -m studies uncertainty` from `studies/uncertainty.jsonl`; change neither by hand.
People are drawn again and again from populations whose true values are known, so that it can be
counted how often an interval holds the truth, and how often a promise is broken. Everything that
was run is shown, what fails too.
"""


def write(kept: Mapping[str, Sequence[Kept]], docs: Path) -> None:
    """Write the page and its pictures into `docs`."""
    docs.mkdir(parents=True, exist_ok=True)
    pictures = _draw(kept, docs / "images")
    (docs / PAGE).write_text(page(kept, pictures), encoding="utf-8")


def page(kept: Mapping[str, Sequence[Kept]], pictures: Mapping[str, str]) -> str:
    """Return the page, Markdown; `pictures` are names of files by part."""
    texts = [_HEAD]
    for name, part in PARTS.items():
        if kept.get(name):
            picture = pictures.get(name)
            shown = f"\n![{part.heading}](images/{picture})\n" if picture else ""
            text = part.section(in_order(part, kept[name]))
            texts.append(f"## {part.heading}\n{shown}\n{text}\n")
    return "\n".join(texts)


def in_order(part: Part, kept: Sequence[Kept]) -> list[Kept]:
    """Return cells as the part lists them, not as processes came to an end; others last."""
    listed = (key(part.name, spec, seed) for spec, seed in part.cells(False))
    place = {name: i for i, name in enumerate(listed)}

    def where(cell: Kept) -> tuple[int, str]:
        name = key(part.name, cell.spec, cell.seed)
        return place.get(name, len(place)), name

    return sorted(kept, key=where)


def picture_name(part: str) -> str:
    """Return the name of a part's picture."""
    return f"study-uncertainty-{part}.png"


def _draw(kept: Mapping[str, Sequence[Kept]], folder: Path) -> dict[str, str]:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    drawn: dict[str, str] = {}
    for name, part in PARTS.items():
        if part.picture is None or not kept.get(name):
            continue
        figure = part.picture(in_order(part, kept[name]), plt)
        if figure is not None:
            folder.mkdir(parents=True, exist_ok=True)
            drawn[name] = picture_name(name)
            figure.savefig(folder / drawn[name], dpi=120, metadata={"Software": None})
            plt.close(figure)
    return drawn
