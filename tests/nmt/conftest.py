"""One training, finished, for all tests that look at one."""

from dataclasses import replace

import pytest
from toy_text import TOY, toy_pairs

from normlens.nmt import Watch, train


@pytest.fixture(scope="session")
def toy():
    return toy_pairs()


@pytest.fixture(scope="session")
def finished(toy, tmp_path_factory):
    """The folder of a finished training, and what it told on the way."""
    folder = tmp_path_factory.mktemp("nmt") / "finished"
    told = {"lines": [], "updates": [], "looks": []}
    watch = Watch(told["lines"].append, told["updates"].append, told["looks"].append)
    train(toy, folder, recipe=replace(TOY, updates=60, every=20), languages=("de", "en"), watch=watch)
    return folder, told
