"""A comparison of aligners into something to read: one page with figures and tables, or a table in the terminal.

Room: what `normlens.alignment.table` found, into files. No model, no links are made here.
"""

from normlens.reports.alignment.files import write_alignment as write_alignment
from normlens.reports.alignment.terminal import alignment_text as alignment_text
