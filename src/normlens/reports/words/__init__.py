"""What was found, in sentences that follow from the numbers.

Room: results to words. Every sentence is a branch on its own numbers and stays true for any model; where a number is
not defined there is no sentence, or one that says why.
"""

from normlens.reports.words.categories import categories as categories
from normlens.reports.words.correlation import correlation as correlation
from normlens.reports.words.dispersion import dispersion as dispersion
from normlens.reports.words.frequency import frequency as frequency
