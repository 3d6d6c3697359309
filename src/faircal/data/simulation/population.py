"""The population model: how simulated people, and images of them, become embeddings.

Image i of person p, who belongs to sub-cluster c of group g, has the embedding x / ‖x‖ with

    x = √α_g m_g + √(1 − α_g) (√β u_c + √(1 − β) e_p + √ν_i n_i)

m_g is the direction that all faces of a group share, u_c that of a sub-cluster no label names,
e_p the person's own, n_i what is particular to the image (pose, light, blur). The page
``docs/explanation/simulation.md`` has the reasoning and the figures that the presets reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from faircal._base.registry import Registry

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

#: Images that are drawn at a time: temporaries stay small.
_BLOCK = 2048


@dataclass(frozen=True)
class SimulatedGroup:
    """A group of people that the attributes name.

    Parameters
    ----------
    values : tuple of str
        The group's value of each attribute of the population, in the same order.
    concentration : float
        α, in [0, 1): what all faces of the group have in common. The larger it is, the more
        alike the simulated network finds two people of the group.
    """

    values: tuple[str, ...]
    concentration: float


@dataclass(frozen=True)
class PopulationModel:
    """What the simulated people and their images are like.

    Parameters
    ----------
    attributes : tuple of str
        Names of the attributes.
    groups : tuple of Group
        People are dealt to them in equal numbers.
    sub_clusters : int
        Number of sub-clusters in each group; a person is in one of them, drawn evenly.
    sub_cluster_share : float
        β, in [0, 1): what people of a sub-cluster have in common, of what the group leaves open.
    noise : float
        Median over images of ν, the strength of n beside the person's part, which has strength 1.
    noise_spread : float
        Standard deviation over images of log ν: how much image quality varies.
    face_dimension, noise_dimension : float
        Effective number of directions in which u and e, and n, vary (`spectrum`).
    first_attribute_share : float
        Share of m that belongs to the first attribute; the others share the rest evenly.
    """

    attributes: tuple[str, ...]
    groups: tuple[SimulatedGroup, ...]
    sub_clusters: int
    sub_cluster_share: float
    noise: float
    noise_spread: float
    face_dimension: float
    noise_dimension: float
    first_attribute_share: float = 1.0

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The values of each attribute, sorted."""
        columns = zip(*(group.values for group in self.groups), strict=True)
        return tuple(tuple(sorted(set(column))) for column in columns)

    def codes(self, attribute: int) -> NDArray[np.int32]:
        """Return the value of each group for an attribute, as codes into `names`."""
        names = self.names[attribute]
        return np.array([names.index(g.values[attribute]) for g in self.groups], dtype=np.int32)

    def centres(self) -> Floats:
        """Return the directions m of the groups, of unit length, shape (n_groups, n_values).

        Every value of every attribute has an axis of its own, so groups that share no value are
        orthogonal.
        """
        rest = (1 - self.first_attribute_share) / max(len(self.attributes) - 1, 1)
        blocks = []
        for number, names in enumerate(self.names):
            share = rest if number else 1 - rest * (len(self.attributes) - 1)
            axes = np.eye(len(names), dtype=np.float32)
            blocks.append(np.sqrt(np.float32(share)) * axes[self.codes(number)])
        return np.concatenate(blocks, axis=1)

    def embed(self, group: Rows, person: Rows, dimension: int, rng: np.random.Generator) -> Floats:
        """Draw the embeddings of images.

        Only element by element operations are used, so the result does not depend on a linear
        algebra library or its threads.

        Parameters
        ----------
        group : ndarray of shape (n_people,)
            The group of each person, a position in `groups`.
        person : ndarray of shape (n_images,)
            The person in each image, a position in `group`.
        dimension : int
            Length of an embedding.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (n_images, dimension), float32, rows of unit length
        """
        centres = self.centres()
        free = dimension - centres.shape[1]
        face, noise = spectrum(free, self.face_dimension), spectrum(free, self.noise_dimension)
        alpha = np.array([g.concentration for g in self.groups], dtype=np.float32)
        beta = np.float32(self.sub_cluster_share)

        def draw(n: int, scale: Floats) -> Floats:
            return rng.standard_normal((n, free), dtype=np.float32) * scale

        u = unit(draw(len(self.groups) * self.sub_clusters, face))
        cluster = group * self.sub_clusters + rng.integers(self.sub_clusters, size=len(group))
        people = np.sqrt(beta) * u[cluster] + np.sqrt(1 - beta) * draw(len(group), face)

        quality = rng.standard_normal(len(person), dtype=np.float32)
        nu = np.float32(self.noise) * np.exp(np.float32(self.noise_spread) * quality)
        sign = rng.choice(np.array([-1, 1], dtype=np.float32), size=dimension)
        vectors = np.empty((len(person), dimension), dtype=np.float32)
        for start in range(0, len(person), _BLOCK):
            block = slice(start, start + _BLOCK)
            who = person[block]
            a = alpha[group[who], None]
            around_person = people[who] + np.sqrt(nu[block, None]) * draw(len(who), noise)
            x = np.concatenate(
                [np.sqrt(a) * centres[group[who]], np.sqrt(1 - a) * around_person], axis=1
            )
            # An orthogonal map: it changes no cosine but spreads each direction over all
            # coordinates, as networks do.
            vectors[block] = scipy.fft.dct(unit(x) * sign, norm="ortho", axis=1)
        return vectors


def unit(x: Floats) -> Floats:
    """Scale rows to unit length."""
    return np.asarray(x / np.sqrt(np.einsum("ij,ij->i", x, x))[:, None], dtype=np.float32)


def spectrum(dimension: int, effective: float) -> Floats:
    """Return standard deviations of `dimension` coordinates, the squares λ adding up to 1.

    λ_j ∝ (1 + j/k)⁻² falls off as a network's principal components do; k is such that the
    effective dimension (Σλ)² / Σλ² is `effective`, or flat where that is not below `dimension`.
    Cosines of unrelated vectors then have a standard deviation of about 1/√effective.

    Examples
    --------
    >>> scale = spectrum(100, 10.0)
    >>> round(float(1 / (scale**4).sum()), 2)
    10.0
    """
    j = np.arange(dimension)
    low, high = 1e-3, 1e6
    for _ in range(60):  # bisection on log k: the effective dimension grows with k
        k = np.sqrt(low * high)
        power = (1 + j / k) ** -2.0
        if power.sum() ** 2 / (power * power).sum() < effective:
            low = k
        else:
            high = k
    return np.asarray(np.sqrt(power / power.sum()), dtype=np.float32)


N_FOLDS = 5


@dataclass(frozen=True)
class Preset:
    """A population and how much of it is drawn, dealt evenly to groups and splits.

    `cross_group_share` is the share of the imposter pairs whose two people are of different groups.
    `splits` are sets of people that no pair connects; consecutive ones are joined into five folds.
    """

    population: PopulationModel
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
        PopulationModel(
            attributes=("ethnicity", "gender"),
            groups=(
                SimulatedGroup(("African", "F"), 0.40),
                SimulatedGroup(("African", "M"), 0.33),
                SimulatedGroup(("Asian", "F"), 0.47),
                SimulatedGroup(("Asian", "M"), 0.35),
                SimulatedGroup(("Caucasian", "F"), 0.02),
                SimulatedGroup(("Caucasian", "M"), 0.03),
                SimulatedGroup(("Indian", "F"), 0.32),
                SimulatedGroup(("Indian", "M"), 0.28),
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
        PopulationModel(
            attributes=("ethnicity",),
            groups=(
                SimulatedGroup(("African",), 0.39),
                SimulatedGroup(("Asian",), 0.38),
                SimulatedGroup(("Caucasian",), 0.01),
                SimulatedGroup(("Indian",), 0.285),
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
        PopulationModel(
            attributes=("ethnicity", "gender"),
            groups=(
                SimulatedGroup(("African", "F"), 0.41),
                SimulatedGroup(("African", "M"), 0.28),
                SimulatedGroup(("Asian", "F"), 0.49),
                SimulatedGroup(("Asian", "M"), 0.29),
                SimulatedGroup(("Caucasian", "F"), 0.08),
                SimulatedGroup(("Caucasian", "M"), 0.10),
                SimulatedGroup(("Indian", "F"), 0.38),
                SimulatedGroup(("Indian", "M"), 0.35),
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
