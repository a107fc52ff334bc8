"""Any registered model type, small, with random weights and inputs it accepts.

Room: models for proofs and tests. Knows `transformers`; nothing of capture or decomposition.
"""

from normlens.probes.build import Probe as Probe
from normlens.probes.build import Tiny as Tiny
from normlens.probes.build import TinyError as TinyError
from normlens.probes.build import build as build
from normlens.probes.build import build_from as build_from
from normlens.probes.classes import model_types as model_types
from normlens.probes.shrink import shrink as shrink
