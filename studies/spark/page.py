"""The page of the study and its picture, from what is kept alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faircal.production.spark.sizing.resources import size

PAGE, PICTURE = "README.md", "skew.png"
Row = dict[str, Any]

_LABELS = {"with_vectors": "vectors with pairs", "shuffled": "ids alone"}
_FRONT = """# Study: moving pairs on Spark

Written by `python -m studies spark`; nothing here is typed by hand. What is moved and why:
[the guide](../../docs/how-to/spark.md). A gallery that is too large for a worker is cut \
into blocks by a
hash of the image's id, and pairs are sorted to tiles of two blocks: ids move, vectors don't. Blocks
here have 65,536 images on average, which are 128 MiB of vectors of 512 float32.
"""
_BLOCKS = """
## Images in blocks

Every id (0, 1, 2, …) is hashed as Spark does it (`xxhash64`; a test asks Spark for the same
numbers).

| images | blocks | fullest / mean | emptiest / mean |
| ---: | ---: | ---: | ---: |
"""
_TILES = """
## Pairs in tiles, tiles in partitions

Pairs of images drawn at random fall into tiles as a multinomial draw has it, which is drawn from
the blocks above. *Probes*: 1,000 images are each compared with many others, so blocks with more
probes have more pairs. Tiles go to partitions by Spark's Murmur3 hash. A partition is a task: what
counts is how much more than the mean the fullest has. In brackets what `plan` expects
(`faircal.production.spark.sizing.volumes.fullest`).

| pairs | images | tiles | fullest tile / mean | 100 partitions | 500 | 2,500 |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
_UNEVEN = """
What a hash deals out are shares, four for each partition: runs of tiles with the same first block,
so that it is loaded once for all of them, or pieces of tiles where these are few. So partitions are
uneven, two to four times the mean at worst, however many there are. With six or more partitions a
core that costs little; with as many partitions as cores, the cores wait for the fullest. More
shares would be more even, and load more blocks ({templates:,} images, {partitions} partitions):

| shares a partition | fullest / mean | loads of blocks |
| ---: | ---: | ---: |
"""
_VOLUMES = """
## What is moved

*Shuffled* is what Spark writes to sort pairs (two ids, `genuine`, a tile) to tiles; *with vectors*
what two joins would that bring each pair its vectors. *Read* are blocks, from shared storage or its
cache, at 200 partitions; where a tile has few pairs only their vectors are read.

| pairs | images | bytes a pair | shuffled | with vectors | ratio | read |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
_MEASURED = """
## What Spark writes

The same shuffle in Spark itself (local mode, 200 partitions, LZ4 as it comes), and its own count of
bytes. The constants of the model were read off an earlier run (64 partitions) of all lines but the
last ones, *unseen*. Seconds are processor time of Java for a million pairs, pairs being made
included.

| images | blocks | ids | with | pairs | bytes a pair | model | error | s | |
| ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |
"""


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write the page, and the picture beside it."""
    parts = {
        kind: [row for row in rows if row["part"] == kind]
        for kind in ("blocks", "tiles", "shares", "measured")
    }
    text = _FRONT
    if parts["blocks"]:
        text += _BLOCKS + "".join(map(_block, parts["blocks"]))
    if parts["tiles"]:
        text += _TILES + "".join(map(_tile, parts["tiles"]))
        text += _UNEVEN.format(**parts["shares"][0]) + "".join(map(_share, parts["shares"]))
        even = [row for row in parts["tiles"] if row["pairs_are"] == "at random"]
        text += _VOLUMES + "".join(map(_volume, even))
        _draw(even, folder / PICTURE)
        text += f"\n![Bytes moved, and how uneven partitions are]({PICTURE})\n"
    if parts["measured"]:
        text += _MEASURED + "".join(map(_measured, parts["measured"])) + _errors(parts["measured"])
    (folder / PAGE).write_text(text, encoding="utf-8")


def _block(row: Row) -> str:
    front = f"| {row['templates']:,} | {row['blocks']:,} |"
    return f"{front} {row['fullest']:.3f} | {row['emptiest']:.3f} |\n"


def _tile(row: Row) -> str:
    cells = []
    for n in ("100", "500", "2500"):
        found = row["partitions"].get(n)
        cells.append("–" if found is None else f"{found[0]:.2f} ({found[1]:.2f})")
    front = f"| {row['pairs']:,} {row['pairs_are']} | {row['templates']:,} | {row['tiles']:,} |"
    return f"{front} {row['fullest_tile']:.2f} | {' | '.join(cells)} |\n"


def _share(row: Row) -> str:
    return f"| {row['shares']} | {row['fullest']:.2f} | {row['loads']:,} |\n"


def _volume(row: Row) -> str:
    ratio = row["with_vectors"] / row["shuffled"]
    front = f"| {row['pairs']:,} | {row['templates']:,} | {row['row_bytes']:.1f} |"
    moved = f"{size(row['shuffled'])} | {size(row['with_vectors'])} | {ratio:.0f}"
    return f"{front} {moved} | {size(row['read'])} |\n"


def _measured(row: Row) -> str:
    error = row["model"] / row["bytes"] - 1
    front = (
        f"| {row['templates']:,} | {row['blocks']:,} | {row['ids']} | {', '.join(row['kept'])} |"
    )
    numbers = f"{row['bytes']:.2f} | {row['model']:.2f} | {error:+.1%} | {row['cpu_seconds']:.2f}"
    return f"{front} {row['pairs']:,} | {numbers} |\n"


def _errors(rows: Sequence[Row]) -> str:
    off = [abs(row["model"] / row["bytes"] - 1) for row in rows]
    unseen = [error for error, row in zip(off, rows, strict=True) if not row["known"]]
    return (
        f"\nThe model is off by {max(off):.1%} at most; on what it had not seen by "
        f"{max(unseen):.1%} at most.\n"
    )


def _draw(rows: Sequence[Row], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    largest = [row for row in rows if row["pairs"] == max(other["pairs"] for other in rows)]
    at = range(len(largest))
    for name, shift, label in (
        ("with_vectors", -0.2, "vectors with pairs"),
        ("shuffled", 0.2, "ids"),
    ):
        heights = [row[name] for row in largest]
        bars = left.bar([x + shift for x in at], heights, 0.38, label=label)
        left.bar_label(bars, [size(height) for height in heights], fontsize=7)
    left.set_yscale("log")
    left.set_ylim(top=3e14)
    left.set_xticks(list(at), [f"{row['templates']:,}" for row in largest], fontsize=8)
    left.set_xlabel("images")
    left.set_ylabel("bytes shuffled")
    left.set_title(f"{largest[0]['pairs']:,} pairs", fontsize=10)
    left.legend(fontsize=8)
    for row in largest:
        shares = row["partitions"]
        places = [int(n) for n in shares]
        label = f"{row['tiles']:,} tiles"
        (line,) = right.plot(places, [found[0] for found in shares.values()], "o-", label=label)
        expected = [found[1] for found in shares.values()]
        right.plot(places, expected, ":", color=line.get_color())
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_yticks([1, 2, 4], ["1", "2", "4"])
    right.set_yticks([], minor=True)
    right.set_xlabel("partitions")
    right.set_ylabel("fullest / mean (dotted: model)")
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
