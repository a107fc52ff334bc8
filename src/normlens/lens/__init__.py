"""The lens: a proved model, and what it shows."""

from normlens.lens.block import Block as Block
from normlens.lens.block import Layers as Layers
from normlens.lens.doctor import Diagnosis as Diagnosis
from normlens.lens.doctor import diagnose as diagnose
from normlens.lens.doctor import tiny_subject as tiny_subject
from normlens.lens.files import open as open
from normlens.lens.lens import Lens as Lens
from normlens.lens.lens import PartlyExact as PartlyExact
from normlens.lens.lens import load as load
from normlens.lens.one_pass import ReconstructionError as ReconstructionError
from normlens.lens.singular import singular_values as singular_values
from normlens.lens.trace import Trace as Trace
