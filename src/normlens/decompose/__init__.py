"""Exact algebra: an attention output taken apart, and the parts measured."""

from normlens.decompose.attention import gram as gram
from normlens.decompose.attention import lengths as lengths
from normlens.decompose.attention import rebuilt as rebuilt
from normlens.decompose.attention import summed_norms as summed_norms
from normlens.decompose.attention import transformed as transformed
from normlens.decompose.attention import transformed_norms as transformed_norms
from normlens.decompose.attention import weighted_norms as weighted_norms
from normlens.decompose.singular import singular_values as singular_values
