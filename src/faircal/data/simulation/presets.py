"""The simulated datasets by name.

Every value was set from the paper's Baseline rows and from the known sizes of RFW and BFW, never
from what another method gives (``docs/explanation/simulation.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

from faircal._base.registry import Registry
from faircal.data.simulation.population import Group, Population

N_FOLDS = 5


@dataclass(frozen=True)
class Preset:
    """A population and how much of it is drawn.

    Parameters
    ----------
    population : Population
    people, images, pairs : int
        How many in all; dealt evenly to groups and splits.
    dimension : int
        Length of an embedding.
    imposters_per_genuine : float
        Imposter pairs for each genuine pair.
    cross_group_share : float
        Share of the imposter pairs whose two people are of different groups.
    splits : int
        Sets of people that no pair connects; consecutive ones are joined into five folds.
    """

    population: Population
    people: int
    images: int
    pairs: int
    dimension: int
    imposters_per_genuine: float
    cross_group_share: float
    splits: int = N_FOLDS


#: Presets by name; registering one makes it available to `simulate` and the command line.
PRESETS: Registry[Preset] = Registry("preset")

PRESETS.register(
    "small",
    Preset(
        Population(
            attributes=("ethnicity", "gender"),
            groups=(
                Group(("African", "F"), 0.40),
                Group(("African", "M"), 0.33),
                Group(("Asian", "F"), 0.47),
                Group(("Asian", "M"), 0.35),
                Group(("Caucasian", "F"), 0.02),
                Group(("Caucasian", "M"), 0.03),
                Group(("Indian", "F"), 0.32),
                Group(("Indian", "M"), 0.28),
            ),
            sub_clusters=6,
            sub_cluster_share=0.3,
            noise=0.8,
            noise_spread=0.9,
            face_dimension=15.0,
            noise_dimension=60.0,
            first_attribute_share=0.7,
        ),
        people=200,
        images=2_000,
        pairs=8_000,
        dimension=128,
        imposters_per_genuine=2.0,
        cross_group_share=0.4,
    ),
)

PRESETS.register(
    "rfw-like",
    Preset(
        Population(
            attributes=("ethnicity",),
            groups=(
                Group(("African",), 0.39),
                Group(("Asian",), 0.38),
                Group(("Caucasian",), 0.01),
                Group(("Indian",), 0.285),
            ),
            sub_clusters=16,
            sub_cluster_share=0.3,
            noise=2.25,
            noise_spread=1.3,
            face_dimension=12.0,
            noise_dimension=300.0,
        ),
        people=12_000,
        images=40_000,
        pairs=24_000,
        dimension=512,
        imposters_per_genuine=1.0,
        cross_group_share=0.0,
        splits=10,
    ),
)

PRESETS.register(
    "bfw-like",
    Preset(
        Population(
            attributes=("ethnicity", "gender"),
            groups=(
                Group(("African", "F"), 0.41),
                Group(("African", "M"), 0.28),
                Group(("Asian", "F"), 0.49),
                Group(("Asian", "M"), 0.29),
                Group(("Caucasian", "F"), 0.08),
                Group(("Caucasian", "M"), 0.10),
                Group(("Indian", "F"), 0.38),
                Group(("Indian", "M"), 0.35),
            ),
            sub_clusters=16,
            sub_cluster_share=0.3,
            noise=1.08,
            noise_spread=1.05,
            face_dimension=11.0,
            noise_dimension=245.0,
            first_attribute_share=0.6,
        ),
        people=800,
        images=20_000,
        pairs=890_000,
        dimension=512,
        imposters_per_genuine=2.81,
        cross_group_share=0.6,
    ),
)
