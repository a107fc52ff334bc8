"""A paper's numbers beside ours: the same experiment run again, cell by cell.

Room: from findings to a comparison with what a paper printed.
"""

from normlens.papers.comparison import Cell as Cell
from normlens.papers.comparison import Comparison as Comparison
from normlens.papers.comparison import rounds_to as rounds_to
from normlens.papers.run import FILE as FILE
from normlens.papers.run import PAPERS as PAPERS
from normlens.papers.run import Data as Data
from normlens.papers.run import DataMissing as DataMissing
from normlens.papers.run import ReproductionError as ReproductionError
from normlens.papers.run import compare as compare
from normlens.papers.run import compare_mixing as compare_mixing
from normlens.papers.run import read as read
from normlens.papers.run import reproduce as reproduce
