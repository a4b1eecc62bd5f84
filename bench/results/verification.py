"""The record of `bench verify`, in a file beside the trials: when, with which code, and how many trials were
reproduced.

A record is valid only for the trials that were sampled from: the file contains their digest. Times, curves and the
order of trials do not enter the digest, so it is the same for a ledger, an archive and a shared copy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.records import SCORES
from bench.results.workspace import source_file
from bench.temporary import replacing

NOT_VERIFIED = "not verified"


@dataclass(frozen=True)
class Verification:
    """One run of `bench verify`."""

    at: str  # when it ended
    digest: str  # of all finished trials
    finished: int  # number of finished trials
    stale: int  # trials among them with other versions or data, which cannot be sampled
    sample: int
    seed: int
    same: int
    different: tuple[str, ...]  # what was not reproduced, one sentence each
    facts: Mapping[str, Any]  # the code and machine that ran the trials again

    @classmethod
    def from_json(cls, raw: Any) -> Verification:
        """Parse a record; raises ValueError if it is invalid."""
        if not isinstance(raw, dict) or set(raw) != set(cls.__dataclass_fields__):
            raise ValueError("an entry lacks a part or has one too many")
        counts = [raw[name] for name in ("finished", "stale", "sample", "seed", "same")]
        texts = [raw["at"], raw["digest"], *raw["different"]]
        if not all(type(one) is int for one in counts) or not all(isinstance(one, str) for one in texts):
            raise ValueError("a value of an entry has the wrong type")
        if not 0 <= raw["same"] <= raw["sample"] or not isinstance(raw["facts"], dict):
            raise ValueError("an entry says that more trials came out the same than were run")
        return cls(**{**raw, "different": tuple(raw["different"])})

    @property
    def words(self) -> str:
        """A one-line summary, for a page or README."""
        commit = str(self.facts.get("commit") or "")[:12]
        code = f"augbench {self.facts.get('augbench', '?')}" + (f", commit {commit}" if commit else "")
        code += " with changes" if self.facts.get("dirty") else ""
        return f"{self.same} of {self.sample} came out the same on {self.at[:10]} ({code}; sample of {self.finished})"


def place_beside(source: Path) -> Path:
    """The path of the record for a workspace, ledger file, archive or shared folder."""
    file = source_file(source)
    return file.with_name(f"{file.name}.verified.json")


def digest(state: LedgerState) -> str:
    """A hash of exactly these finished trials and their results."""
    lines = sorted(
        f"{key} {record.fold} {record.repeat} {[record.score(name) for name in SCORES]} {record.loss}"
        for key, trials in state.trials.items()
        for record in trials.values()
        if record.done
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read(source: Path) -> list[Verification]:
    """All recorded runs, for any trials; none if there is no file."""
    path = place_beside(source)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(raw, list):
            raise ValueError("it is no list")
        return [Verification.from_json(one) for one in raw]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a record of `bench verify` ({error}); delete it and verify again") from error


def write(runs: Sequence[Verification], source: Path) -> Path:
    """Replace the recorded runs beside the trials."""
    path = place_beside(source)
    with replacing(path) as part:
        part.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n", encoding="utf-8")
    return path


def add(run: Verification, source: Path) -> Path:
    """Add a run; earlier runs are kept if they refer to the same trials."""
    return write([*(one for one in read(source) if one.digest == run.digest), run], source)


def counting(source: Path, state: LedgerState) -> list[Verification]:
    """The recorded runs of a source that refer to these trials."""
    found = read(source)
    if not found:
        return []  # the digest of a million trials takes seconds
    name = digest(state)
    return [one for one in found if one.digest == name]


def words_of(runs: Sequence[Verification]) -> str:
    """The newest run, and earlier ones in which a trial was not reproduced."""
    if not runs:
        return NOT_VERIFIED
    *earlier, newest = runs
    return "; ".join(one.words for one in (newest, *(one for one in earlier if one.different)))


def verified_words(source: Path, state: LedgerState) -> str:
    """What a page says about the verification of a source."""
    runs = counting(source, state)
    outdated = not runs and bool(read(source))
    return f"{NOT_VERIFIED} (the record beside them is of other trials)" if outdated else words_of(runs)
