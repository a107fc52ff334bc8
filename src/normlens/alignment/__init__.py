"""Word alignment: what a translation model says belongs together, and how good that is."""

from normlens.alignment.align import Aligned as Aligned
from normlens.alignment.align import align as align
from normlens.alignment.align import each_alignment as each_alignment
from normlens.alignment.align import paired as paired
from normlens.alignment.align import peek as peek
from normlens.alignment.choice import SAMPLE as SAMPLE
from normlens.alignment.default import default_lens as default_lens
from normlens.alignment.default import default_sample as default_sample
from normlens.alignment.gold import Gold as Gold
from normlens.alignment.gold import read_gold as read_gold
from normlens.alignment.links import Alignment as Alignment
from normlens.alignment.pharaoh import read_pharaoh as read_pharaoh
from normlens.alignment.pharaoh import to_pharaoh as to_pharaoh
from normlens.alignment.plan import Rows as Rows
from normlens.alignment.plan import plan as plan
from normlens.alignment.score import Counts as Counts
from normlens.alignment.score import score as score
from normlens.alignment.stream import Pair as Pair
from normlens.alignment.table import Compared as Compared
from normlens.alignment.table import compare_methods as compare_methods
from normlens.alignment.way import Combine as Combine
from normlens.alignment.way import Plan as Plan
from normlens.alignment.words import splitter as splitter
