"""Measures of a test are forgotten after it."""

import pytest

from normlens import measures


@pytest.fixture(autouse=True)
def own_measures_forgotten():
    before = set(measures.QUANTITIES)
    yield
    for name in reversed([name for name in measures.QUANTITIES if name not in before]):
        measures.forget(name)
