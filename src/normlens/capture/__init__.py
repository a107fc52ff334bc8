"""One forward pass, everything needed, nothing left behind."""

from normlens.capture.closeness import relative_error as relative_error
from normlens.capture.examine import Examination as Examination
from normlens.capture.examine import ExaminedBlock as ExaminedBlock
from normlens.capture.examine import examine as examine
from normlens.capture.record import Attended as Attended
from normlens.capture.record import Refused as Refused
from normlens.capture.run import run as run
from normlens.capture.value_maps import value_maps as value_maps
