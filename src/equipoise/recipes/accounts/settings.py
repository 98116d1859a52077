"""What an evaluation of a tree is made of: which embedders at which dimensions, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.geometry.device import check_device_name, torch_device
from equipoise.geometry.names import SYNONYMS
from equipoise.geometry.names import geometry as geometry_named
from equipoise.hierarchy.embedders import embedder, folded
from equipoise.hierarchy.tree import RELATIONS
from equipoise.recipes.accounts.judged import Sure
from equipoise.recipes.accounts.on_device import THERE, whole_schedule
from equipoise.stats.draws import checked_resamples, checked_seed
from equipoise.stats.interval import checked_level

DIMS = (2, 5, 10, 15, 25, 50)
"""The dimensions of the source."""
RATES = (0.1, 0.3, 1.0, 3.0)
"""Learning rates at which every trained embedder is tried; the lowest loss decides."""
KNOWS_NOTHING = "random"
BASELINES = ("euclidean", KNOWS_NOTHING)
TRAINED = ("euclidean", "poincare", "lorentz")
TEXT = "text:"
DISK = "combinatorial"


@dataclass(frozen=True)
class Cell:
    """One embedder at one dimension; a text model has its own dimension (None)."""

    embedder: str
    dim: int | None

    @property
    def system(self) -> str:
        """What it is called in tables."""
        return self.embedder if self.dim is None else f"{self.embedder}-{self.dim}"

    @property
    def is_trained(self) -> bool:
        """Whether it has a learning rate that can be tuned."""
        return self.embedder in TRAINED


@dataclass(frozen=True)
class Settings:
    """How trees are embedded and judged; ``options`` go to the trained embedders.

    These hold the relation of training: that of judging, unless ``checked_settings`` was given another.

    On a ``device`` hyperbolic embedders are trained, and all embeddings are ranked.
    """

    embedders: tuple[str, ...] = ("lorentz",)
    dims: tuple[int, ...] = DIMS
    relation: str = "parent"
    filtered: bool | None = None
    rates: tuple[float, ...] = RATES
    seeds: tuple[int, ...] = (0,)
    options: dict[str, Any] = field(default_factory=dict)
    sure: Sure = field(default_factory=Sure)
    device: str | None = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Everything to be embedded: what was asked for, then the baselines that were not."""
        names = (*self.embedders, *(name for name in BASELINES if name not in self.embedders))
        cells: list[Cell] = []
        for name in names:
            if name.startswith(TEXT):
                cells.append(Cell(name, None))
            else:
                cells += [Cell(name, dim) for dim in self.dims]
        return tuple(cells)

    def seeds_of(self, cell: Cell) -> tuple[int, ...]:
        """The seeds that a cell is made with; a text model knows none."""
        return self.seeds if cell.dim is not None else self.seeds[:1]

    def is_on_device(self, cell: Cell) -> bool:
        """Whether a cell is trained on the device."""
        return self.device is not None and cell.embedder in THERE

    def is_baseline(self, cell: Cell) -> bool:
        """Whether a cell only stands beside: a random embedding, or a euclidean one nobody asked for."""
        return cell.embedder == KNOWS_NOTHING or cell.embedder not in self.embedders

    @property
    def judging(self) -> dict[str, Any]:
        """How an embedding is judged, as arguments of ``judge``."""
        return {
            "relation": self.relation,
            "filtered": self.filtered,
            "sure": self.sure,
            "device": self.device,
        }


def checked_settings(
    geometry: str | Iterable[str] = "lorentz",
    dims: Iterable[int] = DIMS,
    *,
    embedders: Iterable[str] = (),
    relation: str = "parent",
    filtered: bool | None = None,
    rates: Iterable[float] = RATES,
    seeds: int | Iterable[int] = (0,),
    options: dict[str, Any] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    device: str | None = None,
) -> Settings:
    """The settings, every word of them checked before any work begins, and whether the device is there.

    >>> [cell.system for cell in checked_settings("hyperbolic_lorentz", [2]).cells]
    ['lorentz-2', 'euclidean-2', 'random-2']
    """
    spaces = [geometry] if isinstance(geometry, str) else list(geometry)
    names = [*map(trained_in, spaces), *(_known(name) for name in embedders)]
    if relation not in RELATIONS:
        raise UnknownNameError.of("relation", relation, RELATIONS, more=f"there are: {', '.join(RELATIONS)}")
    options = {"train_on": relation, **(options or {})}
    tried = tuple(float(rate) for rate in rates)
    if not tried:
        raise ParameterError("no learning rate is left to try", hint="name one: 0.3")
    for rate in tried:
        embedder("lorentz", **{**options, "rate": rate})
    if device is not None:
        check_device_name(device)
        whole_schedule(options)
    chosen = _whole(dims, "dimension", 1)
    for name in names:
        refuse_flat_disk(name, min(chosen))
    settings = Settings(
        embedders=tuple(dict.fromkeys(names)),
        dims=chosen,
        relation=relation,
        filtered=filtered,
        rates=tried,
        seeds=_whole([seeds] if isinstance(seeds, int) else seeds, "seed", 0),
        options=options,
        sure=Sure(checked_level(level), checked_resamples(resamples), checked_seed(seed)),
        device=device,
    )
    if device is not None:
        torch_device(device)
    return settings


def trained_in(geometry: str) -> str:
    """The embedder that is trained in a geometry, under any name of it.

    >>> trained_in("hyperboloid")
    'lorentz'
    """
    try:
        space = geometry_named(geometry).name
    except UnknownNameError as error:
        near = [*TRAINED, *(each for each, name in SYNONYMS.items() if name in TRAINED)]
        more = f"there are: {', '.join(TRAINED)}"
        raise UnknownNameError.of("geometry", geometry, near, more=more) from error
    if space not in TRAINED:
        raise ParameterError(
            f"no tree embedder is trained in {space} space", hint=f"there are: {', '.join(TRAINED)}"
        )
    return space


def refuse_flat_disk(name: str, dim: int | None) -> None:
    """The combinatorial construction turns around its points, for which a line has no room."""
    if name == DISK and dim is not None and dim < 2:
        raise ParameterError(
            f"{name}-{dim}: the construction is made in a disk, which has two dimensions at least",
            hint="ask for 2 dimensions or more",
        )


def _known(name: str) -> str:
    """An embedder by name; one that nothing answers to is refused with a did-you-mean."""
    embedder(name)
    return folded(name)


def _whole(numbers: Iterable[int], what: str, least: int) -> tuple[int, ...]:
    found: Sequence[int] = list(numbers)
    if not found:
        raise ParameterError(f"no {what} was named", hint=f"name one, such as {max(least, 2)}")
    for number in found:
        if isinstance(number, bool) or int(number) != number or number < least:
            raise ParameterError(f"a {what} is {number}", hint=f"it is a whole number from {least}")
    if len(set(found)) < len(found):
        raise DuplicateError(f"a {what} was named twice", hint="name each once")
    return tuple(int(number) for number in found)
