"""AGENDA: embeddings that one discriminator can't tell groups from."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from faircal.methods.debiasing import DebiasingMethod
from faircal.methods.training.recipes import DebiasingRecipe

_PAPER = DebiasingRecipe(
    width=256,
    discriminator=(128,),
    n_discriminators=1,
    identity_epochs=50,
    episodes=100,
    restart_every=10,
    discriminator_epochs=25,
    debias_epochs=5,
    debias_weight=10.0,
    update_epochs=5,
    stop_at=0.90,
    stop_together=False,
    identity_rate=1e-3,
    discriminator_rate=1e-3,
    debias_rate=1e-3,
    update_rate=1e-3,
    batch_size=400,
    validation=0.2,
    squash=False,
)


class AGENDA(DebiasingMethod):
    """Map embeddings to new ones that one discriminator can't tell groups from; then the cosine.

    How it works is told by `faircal.methods.debiasing.DebiasingMethod`. In the preset
    ``paper-code`` the discriminator ends in softmax(sigmoid(·)).

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.AGENDA(identity_epochs=5, episodes=1, attribute="ethnicity").fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "agenda"
    title = "AGENDA"
    presets: ClassVar = {"paper": _PAPER, "paper-code": replace(_PAPER, squash=True)}
