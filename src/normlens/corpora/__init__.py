"""Corpora: reading them, sorting their tokens into categories, ranking tokens by frequency.

Room: texts and tokens. Nothing here runs a model.
"""

from normlens.corpora import frequency as frequency
from normlens.corpora.categories import Categories as Categories
from normlens.corpora.categories import Category as Category
from normlens.corpora.categories import CategoryError as CategoryError
from normlens.corpora.categories import bare as bare
from normlens.corpora.categories import is_punctuation as is_punctuation
from normlens.corpora.choice import default_categories as default_categories
from normlens.corpora.choice import make_categories as make_categories
from normlens.corpora.choice import parse_category as parse_category
from normlens.corpora.files import file_lines as file_lines
from normlens.corpora.files import lines as lines
from normlens.corpora.files import opened as opened
from normlens.corpora.frequency import FrequencyRanks as FrequencyRanks
from normlens.corpora.item import CorpusError as CorpusError
from normlens.corpora.item import Item as Item
from normlens.corpora.item import Labels as Labels
from normlens.corpora.read import Corpus as Corpus
from normlens.corpora.read import Survey as Survey
from normlens.corpora.read import corpus as corpus
from normlens.corpora.read import default_corpus as default_corpus
from normlens.corpora.read import survey as survey
