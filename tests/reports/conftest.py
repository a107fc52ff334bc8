"""A report that is drawn once, for all who only look at it."""

from pathlib import Path

import pytest
from made_findings import two_kinds

from normlens.reports import write


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Path:
    """The page of `two_kinds`, in a folder that nobody writes to."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    return write(two_kinds(), tmp_path_factory.mktemp("report"))
