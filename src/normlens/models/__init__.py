"""Getting a model and its inputs in."""

from normlens.models.default import default_text as default_text
from normlens.models.encode import Encoded as Encoded
from normlens.models.encode import InputError as InputError
from normlens.models.encode import encode as encode
from normlens.models.encode import encode_both as encode_both
from normlens.models.encode import encode_forced as encode_forced
from normlens.models.encode import longest as longest
from normlens.models.encode import ready as ready
from normlens.models.encode import vocabulary as vocabulary
from normlens.models.load import LoadError as LoadError
from normlens.models.load import Subject as Subject
from normlens.models.load import configuration as configuration
from normlens.models.load import subject as subject
from normlens.models.pictures import patches as patches
from normlens.models.sides import Side as Side
from normlens.models.sides import positions as positions
from normlens.models.spelling import Spelled as Spelled
from normlens.models.spelling import Speller as Speller
