"""The figures of a report, drawn with matplotlib.

Room: results to pictures. Nothing is drawn before it is asked for; the same result always gives the same bytes.
"""

from normlens.reports.pictures.canvas import Drawn as Drawn
from normlens.reports.pictures.canvas import Picture as Picture
from normlens.reports.pictures.canvas import drawn as drawn
from normlens.reports.pictures.categories import categories as categories
from normlens.reports.pictures.correlation import correlation as correlation
from normlens.reports.pictures.dispersion import dispersion as dispersion
from normlens.reports.pictures.frequency import frequency as frequency
from normlens.views.plots.style import DrawingMissing as DrawingMissing
from normlens.views.plots.style import check as check
