"""Made-up inputs for any model, and any registered model type built small to give them to.

Room: models for proofs and tests, in two halves: `inputs` for whatever model there is, `small` for `doctor --tiny` and
the sweep. Knows `transformers`; nothing of capture or algebra.
"""

from normlens.probes.inputs import candidates as candidates
from normlens.probes.small import Probe as Probe
from normlens.probes.small import Tiny as Tiny
from normlens.probes.small import TinyError as TinyError
from normlens.probes.small import build as build
from normlens.probes.small import build_from as build_from
from normlens.probes.small import model_types as model_types
from normlens.probes.small import shrink as shrink
