"""The numbers of a report as tables: rows of plain values, one dict per row.

Room: results to rows. No formatting: numbers stay numbers, and what is not defined is None.
"""

from normlens.reports.rows.categories import categories as categories
from normlens.reports.rows.correlation import correlation as correlation
from normlens.reports.rows.dispersion import dispersion as dispersion
from normlens.reports.rows.frequency import frequency as frequency
