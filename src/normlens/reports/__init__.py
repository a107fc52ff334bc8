"""Findings into something to read: one self-contained page with figures and tables, or a summary in the terminal.

Room: figures, words and signatures into files. Knows results as plain numbers; no model, no torch, no network.
"""

from normlens.reports.alignment import alignment_text as alignment_text
from normlens.reports.alignment import write_alignment as write_alignment
from normlens.reports.files import ReportError as ReportError
from normlens.reports.files import write as write
from normlens.reports.parts import tables as tables
from normlens.reports.pictures import DrawingMissing as DrawingMissing
from normlens.reports.pictures import check as check
from normlens.reports.report import Report as Report
from normlens.reports.report import report as report
from normlens.reports.terminal import show as show
