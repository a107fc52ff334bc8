"""What attention in a Transformer really moves: α against ‖α·f(x)‖, exact, for any transformers model."""

from normlens.alignment import Aligned as Aligned
from normlens.alignment import align as align
from normlens.errors import NormlensError as NormlensError
from normlens.lens import Block as Block
from normlens.lens import Lens as Lens
from normlens.lens import ReconstructionError as ReconstructionError
from normlens.lens import Trace as Trace
from normlens.lens import load as load
from normlens.lens import open as open
from normlens.models import InputError as InputError
from normlens.models import LoadError as LoadError
from normlens.reports import Report as Report
from normlens.reports import report as report
from normlens.version import __version__ as __version__
