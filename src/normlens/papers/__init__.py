"""A paper's numbers beside ours: the same experiment run again, cell by cell.

Room: from findings to a comparison. The paper is Kobayashi et al. (2020); what it printed is data in `expected`.
"""

from normlens.papers.cells import Cell as Cell
from normlens.papers.cells import rounds_to as rounds_to
from normlens.papers.compare import Comparison as Comparison
from normlens.papers.compare import compare as compare
from normlens.papers.data import Data as Data
from normlens.papers.data import DataMissing as DataMissing
from normlens.papers.data import read as read
from normlens.papers.files import write as write
from normlens.papers.run import ReproductionError as ReproductionError
from normlens.papers.run import reproduce as reproduce
from normlens.papers.table import show as show
