"""The examples that every shipped operator has in its docstring, run under both profiles."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from pytest_dstfuzz.perturb import operators, words
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.transformations import SHIPPED, find_operator


@pytest.mark.parametrize("module", [operators, words], ids=lambda module: module.__name__)
def test_the_examples_are_true(module: ModuleType, strict: Perturber, edit_rate: Perturber) -> None:
    policies = {"strict": strict._edit_policy, "edit_rate": edit_rate._edit_policy}
    result = doctest.testmod(module, extraglobs=policies)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("name", [f"{item.name}/{n}" for item in SHIPPED for n in item.operators])
def test_every_shipped_operator_is_registered_and_has_an_example(name: str) -> None:
    operator = find_operator(*name.split("/"))
    assert operator.shipped
    assert operator.label == name
    assert ">>>" in (operator.function.__doc__ or "")
