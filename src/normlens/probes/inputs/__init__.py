"""Inputs that a model may accept, made up from its forward signature and its configuration."""

from normlens.probes.inputs.candidates import candidates as candidates
