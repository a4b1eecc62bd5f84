"""Which tables a command asks for: by name, with changes, by rows and columns, or from a grid file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.registry import UserError

if TYPE_CHECKING:
    from tables.grid import Request
    from tables.selection import Index
    from tables.specs import TableSpec


@dataclass(frozen=True)
class TableChoice:
    """The user's choice: names of tables or grid files, custom rows and columns, and changes to either."""

    names: Sequence[str] = ()
    rows: str = ""
    columns: str = ""
    title: str = ""
    caption: str = ""
    where: Mapping[str, str] = field(default_factory=dict)  # properties of cells that a `Pick` does not handle
    settings: Sequence[str] = ()
    added: Sequence[str] = ()
    labels: Sequence[str] = ()
    data: Path | None = None

    @property
    def own(self) -> bool:
        """Whether rows and columns are given."""
        return bool(self.rows or self.columns)

    def check(self) -> None:
        """Reject options that would have no effect."""
        if self.own and (self.names or self.settings or self.added):
            raise UserError("--rows and --columns make a table of all results; leave out names, --set and --add")
        if not self.own and self.where:
            name = next(iter(self.where))
            raise UserError(f"--where {name}= selects cells of a custom table; add --rows and --columns")
        if not self.own and (self.title or self.caption):
            raise UserError("--name and --caption are for custom tables; add --rows and --columns")
        if (self.settings or self.added) and not self.names:
            raise UserError("--set and --add change a named table; name one, such as 10labelrate")

    def filled_with(self, index: Index, request: Request) -> list[tuple[TableSpec, Request]]:
        """The tables, each with the cells that it may take from the ledger."""
        from bench.plan.changes import read_labels
        from tables.layouts import relabeled
        from tables.wanted import specs_for

        labels = read_labels(self.labels)
        if self.own:
            return [(self._own_table(index, request, labels), request)]
        found: list[tuple[TableSpec, Request]] = []
        plain = [name for name in self.names if not _is_file(name)]
        if plain or not self.names:
            specs = specs_for(index, plain, request.settings, request.pick)
            found += [(relabeled(spec, labels), changed) for spec, changed in self._changed(specs, request)]
        for name in self.names:
            if _is_file(name):
                found.append(self._grid_table(Path(name), request, labels))
        return found

    def _own_table(self, index: Index, request: Request, labels: Mapping[str, str]) -> TableSpec:
        from tables.layouts import Layout, arranged, having

        usual = Layout()
        axes = [_words(text) or default for text, default in ((self.rows, usual.rows), (self.columns, usual.columns))]
        rows, columns = (tuple(one for one in names) for names in axes)
        if not self.columns:
            columns = tuple(name for name in columns if name not in rows)
        layout = Layout(rows, columns, _file_name(self.title) or usual.name, self.caption, labels)
        cells = having(index.described(request.settings, request.pick), self.where)
        return arranged(layout, cells)

    def _changed(self, specs: Sequence[TableSpec], request: Request) -> list[tuple[TableSpec, Request]]:
        from bench.cli.options import specs as split_specs
        from bench.plan.changes import Changes, changed_spec, read_settings, training_picks

        changes = Changes(read_settings(self.settings), tuple(split_specs(list(self.added))))
        if not changes:
            return [(spec, request) for spec in specs]
        own = _picking(request, training_picks(changes.settings))
        return [(changed_spec(spec, changes), own) for spec in specs]

    def _grid_table(self, path: Path, request: Request, labels: Mapping[str, str]) -> tuple[TableSpec, Request]:
        from bench.cli.options import specs as split_specs
        from bench.datasets.paths import data_root
        from bench.plan.changes import Changes, changed_grid, grid_pick, own_table, read_settings
        from bench.plan.grids import named_grid

        grid = named_grid(str(path), self.data)
        changes = Changes(read_settings(self.settings), tuple(split_specs(list(self.added))))
        grid = changed_grid(grid, changes) if changes else grid
        grid = replace(grid, labels={**grid.labels, **labels})
        return own_table(grid, data_root(self.data)), _picking(request, grid_pick(grid))


def _picking(request: Request, where: Mapping[str, str]) -> Request:
    """The request with further properties; those that the user asked for take precedence."""
    return replace(request, pick=replace(request.pick, where={**where, **request.pick.where}))


def _is_file(name: str) -> bool:
    return name.endswith(".toml")


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in text).strip(".")
