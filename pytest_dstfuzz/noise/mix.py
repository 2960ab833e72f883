"""Several noise models as one: who types also writes casually."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pytest_dstfuzz.config.parsers import weighed
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import ModelFile, NoiseKind, Tables


@lru_cache(maxsize=8)
def load_models(names: tuple[str, ...]) -> NoiseModel:
    """Return the model of some names or paths, each with its weight: ``("typing:3", "casual")``.

    Raises:
        UserError: there is no such model or file, or one is named twice.
    """
    given = [weighed(text) for text in names]
    for name, _ in given:
        if [other for other, _ in given].count(name) > 1:
            raise UserError(f"the noise model {name!r} is named twice")
    models = [NoiseModel.load(name) for name, _ in given]
    if len(models) == 1:
        return models[0]
    return NoiseModel(mixed([model.file for model in models], [weight for _, weight in given]))


def mixed(files: Sequence[ModelFile], weights: Sequence[float]) -> ModelFile:
    """Return a model whose slips are those of several, shared by their weights.

    A kind that several have is made as the first of them does, as often as all of them together.
    So are keys and letters that are confused.
    """
    total = math.fsum(weights)
    shares: dict[str, float] = {}
    kinds: dict[str, NoiseKind] = {}
    keyboard: dict[str, str] = {}
    confusions: dict[str, str] = {}
    factors: dict[str, dict[str, float]] = {}
    words: dict[str, dict[str, dict[str, float]]] = {}
    for file, weight in zip(files, weights, strict=True):
        tables = file.tables
        keyboard = {**tables.keyboard, **keyboard}
        confusions = {**tables.confusions, **confusions}
        for kind in file.kinds:
            shares[kind.name] = shares.get(kind.name, 0.0) + kind.share * weight / total
            if kind.name in kinds:
                continue
            kinds[kind.name] = kind
            if kind.name in tables.factors:
                factors[kind.name] = dict(tables.factors[kind.name])
            if kind.name in tables.words:
                words[kind.name] = {word: dict(f) for word, f in tables.words[kind.name].items()}
    rates = [file.slip_rate * weight for file, weight in zip(files, weights, strict=True)]
    return ModelFile(
        format=files[0].format,
        name=",".join(file.name for file in files),
        slip_rate=math.fsum(rates) / total,
        sources=tuple(dict.fromkeys(source for file in files for source in file.sources)),
        kinds=tuple(replace(kind, share=shares[name]) for name, kind in kinds.items()),
        tables=Tables(keyboard, confusions, factors, words),
    )
