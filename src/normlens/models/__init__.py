"""Loading a model, and turning texts, ids and images into its inputs.

Room: models and their inputs. Nothing here runs a model.
"""

from normlens.models.alone import alone as alone
from normlens.models.as_found import NotPutBack as NotPutBack
from normlens.models.as_found import as_found as as_found
from normlens.models.as_found import one_at_a_time as one_at_a_time
from normlens.models.classifier import CLASSIFIER as CLASSIFIER
from normlens.models.default import default_folder as default_folder
from normlens.models.default import default_text as default_text
from normlens.models.encode import Encoded as Encoded
from normlens.models.encode import encode as encode
from normlens.models.encode import encode_both as encode_both
from normlens.models.encode import encode_forced as encode_forced
from normlens.models.encode import ready as ready
from normlens.models.encode import separately as separately
from normlens.models.limits import InputError as InputError
from normlens.models.limits import longest as longest
from normlens.models.limits import takes as takes
from normlens.models.limits import takes_by_name as takes_by_name
from normlens.models.limits import vocabulary as vocabulary
from normlens.models.load import LoadError as LoadError
from normlens.models.load import Subject as Subject
from normlens.models.load import configuration as configuration
from normlens.models.load import in_training as in_training
from normlens.models.load import subject as subject
from normlens.models.mask import real_positions as real_positions
from normlens.models.mask import without_a_mask as without_a_mask
from normlens.models.pictures import patches as patches
from normlens.models.quiet import quiet as quiet
from normlens.models.sides import Side as Side
from normlens.models.sides import positions as positions
from normlens.models.sides import text_side as text_side
from normlens.models.spelling import Spelled as Spelled
from normlens.models.spelling import Speller as Speller
from normlens.models.spelling import placed as placed
from normlens.models.tokenizer import text_tokenizer as text_tokenizer
from normlens.models.words import spell as spell
from normlens.models.words import word_ids as word_ids
