"""Any registered model type, small, with random weights and inputs it accepts."""

from normlens.probes.small.build import Probe as Probe
from normlens.probes.small.build import Tiny as Tiny
from normlens.probes.small.build import TinyError as TinyError
from normlens.probes.small.build import build as build
from normlens.probes.small.build import build_from as build_from
from normlens.probes.small.classes import model_types as model_types
from normlens.probes.small.shrink import shrink as shrink
