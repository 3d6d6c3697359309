"""``faircal simulate``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.options import check_folder, json_option, print_json, seed_option, working


@click.command(epilog="Example: faircal simulate small /tmp/small --seed 3")
@click.argument("preset")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--people", type=click.IntRange(1), default=None, help="People  [default: the preset's]"
)
@click.option(
    "--images", type=click.IntRange(1), default=None, help="Images  [default: the preset's]"
)
@click.option(
    "--pairs", type=click.IntRange(1), default=None, help="Pairs  [default: the preset's]"
)
@click.option(
    "--dimension",
    type=click.IntRange(2),
    default=None,
    help="Length of embeddings  [default: the preset's]",
)
@seed_option
@json_option
def command(
    preset: str,
    folder: Path,
    people: int | None,
    images: int | None,
    pairs: int | None,
    dimension: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Write a simulated dataset folder DIR.

    PRESET is small (8,000 pairs, 128-d), rfw-like (24,000 pairs, 512-d) or bfw-like (890,000 pairs,
    512-d). The same seed gives the same bytes. See docs/explanation/simulation.md for the model.
    """
    from faircal.data import save_dataset
    from faircal.simulation import simulate

    check_folder(folder)
    with working(f"simulating {preset}"):
        data = simulate(
            preset, seed=seed, people=people, images=images, pairs=pairs, dimension=dimension
        )
        save_dataset(data, folder)
    if as_json:
        print_json(
            {"folder": str(folder), "pairs": len(data), "images": len(data.images), "seed": seed}
        )
    else:
        click.echo(str(folder))
