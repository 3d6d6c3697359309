"""What a choice of clusters and calibrator comes to, in words."""

from __future__ import annotations

from faircal.evaluation.tuning.choice import Choice, Stability, TriedSetting


def choice_words(choice: Choice) -> list[str]:
    """Say what was chosen, why, and where more or fewer clusters may be tried."""
    chosen, best, plain = choice.chosen, choice.best, choice.baseline
    text = f"Chosen: {_name(chosen)}. "
    if chosen is best:
        text += "It has the least loss on people held out"
        fewer = any(row.n_clusters < chosen.n_clusters for row in choice.table)
        if fewer and choice.within:
            text += f", and nothing with fewer clusters is within {_errors(choice)}"
        text += "."
    else:
        text += f"It is within {_errors(choice)} of the best ({_name(best)}); "
        text += "fewer clusters leave more pairs to each map."
    if chosen.n_clusters > 1:
        text += f" {_gain(chosen, plain)}"
    return [text, *_edges(choice)]


def _errors(choice: Choice) -> str:
    """Return how far from the best is near enough."""
    return "one standard error" if choice.within == 1 else f"{choice.within:g} standard errors"


def _gain(chosen: TriedSetting, plain: TriedSetting) -> str:
    if plain.worse <= plain.worse_error:
        return "But one map for all pairs does as well: clusters gain nothing that can be told."
    part = 1 - chosen.loss / plain.loss
    change = f"{plain.loss:.4f} to {chosen.loss:.4f}"
    return f"Against one map for all pairs the loss goes from {change} ({-part:+.1%})."


def _edges(choice: Choice) -> list[str]:
    """Say where the numbers tried end too soon to tell."""
    counts = sorted({row.n_clusters for row in choice.table})
    if choice.n_clusters == counts[-1] and choice.best.n_clusters == counts[-1]:
        more = f"--clusters {counts[-1]},{2 * counts[-1]},{4 * counts[-1]}"
        return [f"The most clusters tried are the best: more may be better still ({more})."]
    if choice.n_clusters == counts[0] > 1:
        fewer = sorted({max(1, counts[0] // 4), max(1, counts[0] // 2), counts[0]})
        option = ",".join(map(str, fewer))
        return [f"The fewest clusters tried are chosen: still fewer may do (--clusters {option})."]
    return []


def stability_words(choice: Choice) -> list[str]:
    """Say how much depends on the start of K-means, and on the number of clusters."""
    rows = [row for row in choice.stability if row.calibrator == choice.calibrator]
    row = next(row for row in rows if row.n_clusters == choice.n_clusters)
    words = [_start_words(row, choice.starts)]
    return [*words, _count_words(choice, rows)] if len(rows) > 1 else words


def _start_words(row: Stability, starts: int) -> str:
    if starts == 1:
        return "With one start it is not known how much depends on it; take --starts 3."
    if row.n_clusters == 1:
        return "With one cluster nothing depends on the start."
    alike = _alike(row.adjusted_rand)
    return (
        f"Start: with {row.n_clusters} clusters, another start of K-means moves a probability by "
        f"{row.difference:.4f} on average, by less than {row.difference_95:.4f} for 95 % of pairs, "
        f"and turns {1 - row.agreement:.2%} of the decisions at 1/2. The clusters themselves are "
        f"{alike} (adjusted Rand index {row.adjusted_rand:.2f}; 1 is the same, 0 is chance)."
    )


def _alike(rand: float) -> str:
    return (
        "nearly the same" if rand > 0.8 else "alike in part" if rand > 0.4 else "mostly different"
    )


def _count_words(choice: Choice, rows: list[Stability]) -> str:
    losses = {
        row.n_clusters: row.loss for row in choice.table if row.calibrator == choice.calibrator
    }
    low, high = min(losses, key=losses.__getitem__), max(losses, key=losses.__getitem__)
    clear = [row for row in rows if abs(row.change) > 2 * row.change_error]
    return (
        f"K: with {choice.calibrator} the loss lies between {losses[low]:.4f} (K = {low}) and "
        f"{losses[high]:.4f} (K = {high}). From one K to the next it changes by more than two "
        f"standard errors in {len(clear)} of {len(rows) - 1} steps."
    )


def _name(row: TriedSetting) -> str:
    noun = "cluster" if row.n_clusters == 1 else "clusters"
    return f"{row.n_clusters} {noun}, {row.calibrator}"
