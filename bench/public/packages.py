"""Whose packages Python finds under our names. Nothing but the registry is imported for the look."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from bench.registry import UserError

PACKAGES = ("augmenters", "models", "tables")  # and `bench`, which has been imported by now


def refuse_other_packages() -> None:
    """The names of our packages are common ones (PyTables is `tables` too): of two, Python takes the first it finds.

    They are looked up, not imported: what a foreign package does when it is imported is its own affair.
    """
    home = Path(__file__).resolve().parents[2]
    for name in PACKAGES:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # it stands half imported, or as something else, in sys.modules
            found = None
        places = [] if found is None else [*(found.submodule_search_locations or ()), *filter(None, [found.origin])]
        if home / name in (Path(place).resolve() for place in places):
            continue
        where = f"the one in {places[0]}" if places else "not installed"
        known = ", perhaps PyTables" if name == "tables" and places else ""
        raise UserError(
            f"the package `{name}` that Python finds is {where}{known}, not augbench's in {home}; "
            "rename yours, start from another folder, or install augbench in an environment of its own"
        )
