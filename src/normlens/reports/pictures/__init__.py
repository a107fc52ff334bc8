"""The figures of a report, drawn with matplotlib.

Room: results to pictures. Nothing is drawn before it is asked for; the same result always gives the same bytes.
"""

from __future__ import annotations

from normlens.reports.pictures.canvas import DrawingMissing as DrawingMissing
from normlens.reports.pictures.canvas import Drawn as Drawn
from normlens.reports.pictures.canvas import Picture as Picture
from normlens.reports.pictures.canvas import check as check
from normlens.reports.pictures.canvas import drawn as drawn
from normlens.reports.pictures.categories import categories
from normlens.reports.pictures.correlation import correlation
from normlens.reports.pictures.dispersion import dispersion
from normlens.reports.pictures.frequency import frequency
from normlens.studies.results import Categories, Correlation, Dispersion, Frequency


def pictures(result: Dispersion | Categories | Correlation | Frequency) -> list[Picture]:
    """The figures of one study and one kind of attention, in reading order."""
    if isinstance(result, Dispersion):
        return dispersion(result)
    if isinstance(result, Categories):
        return categories(result)
    if isinstance(result, Correlation):
        return correlation(result)
    return frequency(result)
