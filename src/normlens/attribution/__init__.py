"""What drove a prediction: a score for each input token, by one of several methods.

Room: attribution. It runs a model that is given to it and reads its traces; it loads none, and draws nothing.
"""

from normlens.attribution.asking import Asked as Asked
from normlens.attribution.asking import ask as ask
from normlens.attribution.attattr import AttendedLayer as AttendedLayer
from normlens.attribution.attattr import Edge as Edge
from normlens.attribution.attattr import attention_attributions as attention_attributions
from normlens.attribution.attattr import tree as tree
from normlens.attribution.attribute import attribute as attribute
from normlens.attribution.methods import METHODS as METHODS
from normlens.attribution.passages import Passage as Passage
from normlens.attribution.question import AttributionError as AttributionError
from normlens.attribution.question import Method as Method
from normlens.attribution.question import Question as Question
from normlens.attribution.question import Scores as Scores
from normlens.attribution.question import Watcher as Watcher
from normlens.attribution.removal import REMOVALS as REMOVALS
from normlens.attribution.removal import Removal as Removal
from normlens.attribution.removal import logits_without as logits_without
from normlens.attribution.removal import without as without
from normlens.attribution.result import Attribution as Attribution
from normlens.attribution.result import Explained as Explained
from normlens.attribution.result import rows as rows
