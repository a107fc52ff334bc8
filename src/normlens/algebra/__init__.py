"""Exact algebra: an attention output taken apart, and the parts measured.

Room: tensors to tensors. No model, no hooks, no statistics, no pictures.
"""

from normlens.algebra import gated as gated
from normlens.algebra.again import Again as Again
from normlens.algebra.again import Piece as Piece
from normlens.algebra.again import value_zeroing as value_zeroing
from normlens.algebra.attention import coordinates as coordinates
from normlens.algebra.attention import gram as gram
from normlens.algebra.attention import lengths as lengths
from normlens.algebra.attention import rebuilt as rebuilt
from normlens.algebra.attention import summed_norms as summed_norms
from normlens.algebra.attention import transformed as transformed
from normlens.algebra.attention import transformed_norms as transformed_norms
from normlens.algebra.attention import transformed_sums as transformed_sums
from normlens.algebra.attention import weighted_norms as weighted_norms
from normlens.algebra.expansion import Variant as Variant
from normlens.algebra.expansion import expansion_rate as expansion_rate
from normlens.algebra.feedforward import FeedForward as FeedForward
from normlens.algebra.feedforward import Rule as Rule
from normlens.algebra.feedforward import activation_shares as activation_shares
from normlens.algebra.flow import Links as Links
from normlens.algebra.flow import max_flows as max_flows
from normlens.algebra.flow import rounding as rounding
from normlens.algebra.mixture import Expert as Expert
from normlens.algebra.mixture import Mixture as Mixture
from normlens.algebra.output import output_mixing as output_mixing
from normlens.algebra.output import output_norms as output_norms
from normlens.algebra.parts import RowStep as RowStep
from normlens.algebra.parts import Sent as Sent
from normlens.algebra.parts import Stage as Stage
from normlens.algebra.parts import mixing as mixing
from normlens.algebra.parts import norms as norms
from normlens.algebra.proximity import alti as alti
from normlens.algebra.proximity import effective_weights as effective_weights
from normlens.algebra.proximity import feedforward_share as feedforward_share
from normlens.algebra.proximity import route_shares as route_shares
from normlens.algebra.rollout import joint_rollout as joint_rollout
from normlens.algebra.rollout import one_map as one_map
from normlens.algebra.rollout import rollout as rollout
from normlens.algebra.rollout import shares as shares
from normlens.algebra.rollout import side_by_side as side_by_side
from normlens.algebra.rollout import with_residual as with_residual
from normlens.algebra.similarity import head_vectors as head_vectors
from normlens.algebra.similarity import similarity as similarity
from normlens.algebra.singular import singular_values as singular_values
from normlens.algebra.words import to_words as to_words
from normlens.algebra.words import word_pieces as word_pieces
