"""One pass of a model as a program of linear steps, and that program run for the parts of every token.

watching, rules, calls, cells, labels: the pass becomes steps      program: the steps that count, and where biases go
"""

from normlens.attribution.linear.carry import carried as carried
from normlens.attribution.linear.labels import Lost as Lost
from normlens.attribution.linear.program import Program as Program
from normlens.attribution.linear.program import Sharing as Sharing
from normlens.attribution.linear.rules import rule as rule
from normlens.attribution.linear.steps import Active as Active
from normlens.attribution.linear.steps import Mixed as Mixed
from normlens.attribution.linear.steps import Seed as Seed
from normlens.attribution.linear.steps import Step as Step
from normlens.attribution.linear.watching import watched as watched
from normlens.attribution.linear.whole import Leaf as Leaf
from normlens.attribution.linear.whole import slopes as slopes
