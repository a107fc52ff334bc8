"""Summaries that add: a batch, a shard and a corpus are the same type, and merging is `+`.

Room: streams of numbers. Knows nothing of attention.
"""

from normlens.statistics.codes import codes_of as codes_of
from normlens.statistics.codes import joined as joined
from normlens.statistics.files import StateError as StateError
from normlens.statistics.files import Statistic as Statistic
from normlens.statistics.files import read as read
from normlens.statistics.files import write as write
from normlens.statistics.histogram import Histogram as Histogram
from normlens.statistics.moments import Moments as Moments
from normlens.statistics.products import Products as Products
from normlens.statistics.ranks import Ranks as Ranks
from normlens.statistics.ranks import pooled as pooled
from normlens.statistics.regression import RIDGE as RIDGE
from normlens.statistics.regression import Fit as Fit
from normlens.statistics.regression import Regression as Regression
from normlens.statistics.sample import Sample as Sample
