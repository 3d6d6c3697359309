"""PASS and MultiPASS: embeddings that ensembles of discriminators can't tell groups from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from faircal.methods.agenda import AGENDA
from faircal.methods.debiasing import DebiasingMethod

_PAPER = replace(
    AGENDA.presets["paper"],
    discriminator=(128, 64),
    n_discriminators=2,
    identity_epochs=100,
    discriminator_epochs=100,
    stop_at=0.95,
)
_CODE = replace(_PAPER, squash=True, identity_rate=1e-2, debias_rate=1e-4)


class PASS(DebiasingMethod):
    """Map embeddings to new ones that an ensemble of discriminators can't tell groups from.

    How it works is told by `faircal.methods.debiasing.DebiasingMethod`. There are two
    discriminators: stage 3 heeds the one that is least ignorant, stage 4 teaches one after the
    other. In the preset ``paper-code`` they end in softmax(sigmoid(·)), and the learning rates of
    stages 1 and 3 are 10⁻² and 10⁻⁴ in place of 10⁻³.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.PASS(identity_epochs=5, episodes=1, discriminator_epochs=5).fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "pass"
    title = "PASS"
    presets: ClassVar = {"paper": _PAPER, "paper-code": _CODE}


class MultiPASS(DebiasingMethod):
    """PASS with an ensemble of discriminators for each attribute of ``a+b``.

    How it works is told by `faircal.methods.debiasing.DebiasingMethod`. There are three
    discriminators for ``gender``, two for any other attribute. In the preset ``paper-code`` they
    end in softmax(sigmoid(·)), the learning rates of stages 1, 3 and 4 are 10⁻², 10⁻⁴ and 10⁻⁴ in
    place of 10⁻³, and stage 4 goes on until the discriminators of all attributes are good.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.MultiPASS(identity_epochs=5, episodes=1, discriminator_epochs=5).fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "multipass"
    title = "MultiPASS"
    needs = replace(DebiasingMethod.needs, several_attributes=True)
    presets: ClassVar = {
        "paper": replace(_PAPER, n_discriminators={"gender": 3}),
        "paper-code": replace(
            _CODE, n_discriminators={"gender": 3}, update_rate=1e-4, stop_together=True
        ),
    }

    @classmethod
    def _attributes(cls, attribute: str) -> Sequence[str]:
        return attribute.split("+")
