"""One forward pass of a model, with everything its attention blocks compute, and the proof that it is exact.

Room: models that run. Knows nothing of measures, statistics and pictures.
"""

from normlens.capture import vocabulary as vocabulary
from normlens.capture.calls import called as called
from normlens.capture.calls import tensors_in as tensors_in
from normlens.capture.compare import relative_error as relative_error
from normlens.capture.compare import tolerance as tolerance
from normlens.capture.descent import is_in_place as is_in_place
from normlens.capture.examine import Examination as Examination
from normlens.capture.examine import ExaminedBlock as ExaminedBlock
from normlens.capture.examine import examine as examine
from normlens.capture.examined import Own as Own
from normlens.capture.examined import Padding as Padding
from normlens.capture.fused import attention_weights as attention_weights
from normlens.capture.generation import generate as generate
from normlens.capture.implementation import beyond_reading as beyond_reading
from normlens.capture.implementation import implementations as implementations
from normlens.capture.implementation import switched as switched
from normlens.capture.listen import module_path as module_path
from normlens.capture.paths import BESIDE as BESIDE
from normlens.capture.paths import NO_FEEDFORWARD as NO_FEEDFORWARD
from normlens.capture.paths import NO_PATH as NO_PATH
from normlens.capture.paths import PARALLEL as PARALLEL
from normlens.capture.paths import SCOPES as SCOPES
from normlens.capture.paths import Path as Path
from normlens.capture.paths import Scope as Scope
from normlens.capture.positions import Stream as Stream
from normlens.capture.positions import is_auxiliary as is_auxiliary
from normlens.capture.record import Attended as Attended
from normlens.capture.record import Axis as Axis
from normlens.capture.record import Ran as Ran
from normlens.capture.record import Refused as Refused
from normlens.capture.record import Seen as Seen
from normlens.capture.record import unordered as unordered
from normlens.capture.run import StandInError as StandInError
from normlens.capture.run import Untapped as Untapped
from normlens.capture.run import fresh as fresh
from normlens.capture.run import run as run
from normlens.capture.run import run_untapped as run_untapped
from normlens.capture.stages import PathError as PathError
from normlens.capture.stages import stage as stage
from normlens.capture.value_maps import ValueMap as ValueMap
from normlens.capture.value_maps import value_maps as value_maps
