"""Any registered model type, small, with random weights and inputs it accepts.

Room: models for proofs and tests. Knows `transformers`; nothing of capture or decomposition.
"""

from normlens.tiny.build import Probe as Probe
from normlens.tiny.build import Tiny as Tiny
from normlens.tiny.build import TinyError as TinyError
from normlens.tiny.build import build as build
from normlens.tiny.build import build_from as build_from
from normlens.tiny.classes import model_types as model_types
from normlens.tiny.shrink import shrink as shrink
