"""The lens: a proved model, and the traces of it.

Room: from a model and an input to blocks, tables, files and figures.
"""

from normlens.capture import generate as generate
from normlens.files import TablesMissing as TablesMissing
from normlens.files import import_pandas as import_pandas
from normlens.lens.block import Block as Block
from normlens.lens.block import Layers as Layers
from normlens.lens.block import NotKept as NotKept
from normlens.lens.doctor import Diagnosis as Diagnosis
from normlens.lens.doctor import NoProbe as NoProbe
from normlens.lens.doctor import diagnose as diagnose
from normlens.lens.doctor import tiny_subject as tiny_subject
from normlens.lens.files import FileError as FileError
from normlens.lens.files import open as open
from normlens.lens.gates import GatedBlock as GatedBlock
from normlens.lens.gates import GateError as GateError
from normlens.lens.gates import Gates as Gates
from normlens.lens.gates import find_gates as find_gates
from normlens.lens.hiding import HidingError as HidingError
from normlens.lens.hiding import observe_hiding as observe_hiding
from normlens.lens.lens import Lens as Lens
from normlens.lens.lens import PartlyExact as PartlyExact
from normlens.lens.lens import load as load
from normlens.lens.network_map import MapError as MapError
from normlens.lens.network_map import NetworkMap as NetworkMap
from normlens.lens.one_pass import ReconstructionError as ReconstructionError
from normlens.lens.pictured import NothingToShow as NothingToShow
from normlens.lens.routes import Routes as Routes
from normlens.lens.singular import ExpansionRates as ExpansionRates
from normlens.lens.singular import SingularValues as SingularValues
from normlens.lens.singular import expansion_rates as expansion_rates
from normlens.lens.singular import singular_values as singular_values
from normlens.lens.trace import Trace as Trace
from normlens.lens.wiring import SIDES as SIDES
from normlens.lens.wiring import Kind as Kind
from normlens.lens.wiring import Wire as Wire
