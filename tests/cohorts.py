"""One population in two: pairs of one's own, and a cohort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from faircal import Cohort, Dataset, save_dataset
from faircal.data.tables import write_csv
from faircal.data.types import Embeddings, Feature


def own_and_cohort(people, attribute=None, camera=0.0):
    """Return the pairs of every second person, and the others as a cohort.

    `camera` is how much all images of one's own have in common, beside vectors of length 1.
    """
    codes = people.images.identity.codes
    odd = codes % 2 == 1
    vectors = people.embeddings.vectors
    groups = people.image_groups(attribute)
    cohort = Cohort(
        embeddings=vectors[odd],
        identity=np.array(people.images.identity.names)[codes][odd],
        groups=np.array(groups.names)[groups.codes][odd],
        attribute=attribute or "group",
        name="public",
    )
    common = np.random.default_rng(0).normal(size=vectors.shape[1])
    seen = Embeddings.of(vectors + camera * common / np.linalg.norm(common), "own")
    own = people.subset(~odd[people.pairs.left] & ~odd[people.pairs.right])
    made = Dataset.assemble(
        "own", own.images, own.pairs, {"embedding": Feature(seen)}, provenance={}, seed=None
    )
    return made, cohort


def write_both(own, cohort, home):
    """Write ``own`` and ``cohort``; return the two folders."""
    return write_own(own, home / "own"), write_cohort(cohort, home / "cohort")


def write_own(own, folder):
    """Write pairs whose images have no attributes."""
    images = replace(own.images, attributes={}, crossed=())
    bare = Dataset.assemble("own", images, own.pairs, own.features, seed=None)
    return save_dataset(bare, folder)


def write_cohort(cohort, folder):
    """Write a folder without pairs."""
    folder.mkdir(parents=True)
    np.save(folder / "embeddings.npy", cohort.embeddings["embedding"].vectors)
    columns = {
        "image_id": np.arange(len(cohort)),
        "identity": np.array(cohort.identity.names)[cohort.identity.codes],
        cohort.attribute: np.array(cohort.groups.names)[cohort.groups.codes],
    }
    write_csv(folder / "images.csv", pa.table(columns))
    return folder
