"""A paper's numbers beside ours: the same experiment run again, cell by cell.

Room: from findings to a comparison. The paper is Kobayashi et al. (2020); what it printed is data in `expected`.
"""

from normlens.reproduction.cells import Cell as Cell
from normlens.reproduction.cells import rounds_to as rounds_to
from normlens.reproduction.compare import Comparison as Comparison
from normlens.reproduction.compare import compare as compare
from normlens.reproduction.data import Data as Data
from normlens.reproduction.data import DataMissing as DataMissing
from normlens.reproduction.data import read as read
from normlens.reproduction.files import write as write
from normlens.reproduction.run import ReproductionError as ReproductionError
from normlens.reproduction.run import reproduce as reproduce
from normlens.reproduction.table import show as show
