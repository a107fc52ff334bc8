"""Settings every test shares. Nothing in the tests reaches for a network."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported, so before everything else

import pytest
import torch
from hypothesis import settings

settings.register_profile("house", deadline=None, max_examples=30)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def one_thread():
    """Two workers on two cores: one thread each."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def minilm():
    """The embedded model."""
    import normlens as nl

    return nl.load()
