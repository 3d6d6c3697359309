"""Pictures of one answer, as SVG that takes the page's colours; the words beside say the same."""

from __future__ import annotations

import math

from markupsafe import Markup

#: Powers of ten of a likelihood ratio that the scale shows at either end.
_END = 6
_WIDE, _ROOM = 360, 4


def dots(share: float) -> Markup:
    """Draw a hundred pairs, as many of them filled as are of one person.

    Examples
    --------
    >>> str(dots(0.97)).count('class="full"')
    97
    """
    full = round(100 * share)
    drawn = "".join(
        f'<circle class="{"full" if i < full else "bare"}" '
        f'cx="{10 + 20 * (i % 10)}" cy="{10 + 20 * (i // 10)}" r="7"/>'
        for i in range(100)
    )
    return Markup(  # noqa: S704 - nothing but numbers is put in
        '<svg class="dots" viewBox="0 0 200 200" aria-hidden="true" focusable="false">'
        f"{drawn}</svg>"
    )


def scale(log_likelihood_ratio: float) -> Markup:
    """Draw where a log-likelihood ratio (nats) lies, from a million to one against, to one for.

    Examples
    --------
    >>> 'class="here" x1="180.0"' in scale(0.0)
    True
    """

    def across(power: float) -> float:
        part = (min(max(power, -_END), _END) + _END) / (2 * _END)
        return _ROOM + part * (_WIDE - 2 * _ROOM)

    here = across(log_likelihood_ratio / math.log(10))
    start, middle, end = across(-_END), across(0), across(_END)
    ticks = "".join(
        f'<line class="tick" x1="{across(power):.1f}" x2="{across(power):.1f}" y1="24" y2="36"/>'
        for power in range(1 - _END, _END)
    )
    names = (
        (start, 14, "start", "end", "two people"),
        (end, 14, "end", "end", "one person"),
        (start, 55, "start", "odd", "1 : 1 million"),
        (middle, 55, "middle", "odd", "1 : 1"),
        (end, 55, "end", "odd", "1 million : 1"),
    )
    words = "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{name}</text>'
        for x, y, anchor, kind, name in names
    )
    return Markup(  # noqa: S704 - nothing but numbers is put in
        f'<svg class="scale" viewBox="0 0 {_WIDE} 60" aria-hidden="true" focusable="false">'
        f'<rect class="track" x="{start:.1f}" y="24" width="{end - start:.1f}" height="12"/>'
        f'<rect class="reach" x="{min(here, middle):.1f}" y="24" '
        f'width="{abs(here - middle):.1f}" height="12"/>{ticks}'
        f'<line class="here" x1="{here:.1f}" x2="{here:.1f}" y1="19" y2="41"/>{words}</svg>'
    )


def faces(same: bool) -> Markup:
    """Draw the decision: two circles that overlap, or stand apart.

    Examples
    --------
    >>> faces(True) == faces(False)
    False
    """
    left, right = (17, 33) if same else (17, 47)
    return Markup(  # noqa: S704 - nothing but numbers is put in
        '<svg class="mark" viewBox="0 0 64 40" aria-hidden="true" focusable="false">'
        f'<circle cx="{left}" cy="20" r="14"/><circle cx="{right}" cy="20" r="14"/></svg>'
    )
