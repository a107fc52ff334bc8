"""Word alignment: which words belong together according to a translation model, and how good that is against gold.

Room: from sentence pairs to links, scores and their report.
"""

from normlens.alignment.align import Aligned as Aligned
from normlens.alignment.align import Rows as Rows
from normlens.alignment.align import align as align
from normlens.alignment.align import choose as choose
from normlens.alignment.align import each_alignment as each_alignment
from normlens.alignment.align import peek as peek
from normlens.alignment.aligner import Aligner as Aligner
from normlens.alignment.aligner import Combine as Combine
from normlens.alignment.aligner import ModelLayers as ModelLayers
from normlens.alignment.bundled import default_lens as default_lens
from normlens.alignment.bundled import default_sample as default_sample
from normlens.alignment.compared import Compared as Compared
from normlens.alignment.gold import Gold as Gold
from normlens.alignment.gold import GoldFile as GoldFile
from normlens.alignment.gold import open_gold as open_gold
from normlens.alignment.gold import read_gold as read_gold
from normlens.alignment.layers import SAMPLE as SAMPLE
from normlens.alignment.layers import NothingToChoose as NothingToChoose
from normlens.alignment.links import Alignment as Alignment
from normlens.alignment.links import LinksError as LinksError
from normlens.alignment.maps import Reading as Reading
from normlens.alignment.maps import shards as shards
from normlens.alignment.maps import soft as soft
from normlens.alignment.methods import compare_methods as compare_methods
from normlens.alignment.pharaoh import read_pharaoh as read_pharaoh
from normlens.alignment.pharaoh import to_pharaoh as to_pharaoh
from normlens.alignment.pharaoh import uneven_lines as uneven_lines
from normlens.alignment.report import alignment_document as alignment_document
from normlens.alignment.report import alignment_text as alignment_text
from normlens.alignment.report import write_alignment as write_alignment
from normlens.alignment.resample import Comparison as Comparison
from normlens.alignment.resample import Interval as Interval
from normlens.alignment.resample import Intervals as Intervals
from normlens.alignment.resample import bootstrap as bootstrap
from normlens.alignment.resample import compare as compare
from normlens.alignment.score import Counts as Counts
from normlens.alignment.score import Tally as Tally
from normlens.alignment.score import numbering_doubts as numbering_doubts
from normlens.alignment.score import score as score
from normlens.alignment.score import tally as tally
from normlens.alignment.statistical import available as available
from normlens.alignment.statistical import statistical as statistical
from normlens.alignment.words import Pair as Pair
from normlens.alignment.words import paired as paired
from normlens.alignment.words import splitter as splitter
