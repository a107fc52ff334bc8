"""A comparison of aligners as a document of chapters, which the page, the terminal and the files of `exhibits` show."""

from normlens.alignment.report.document import alignment_document as alignment_document
from normlens.alignment.report.document import alignment_text as alignment_text
from normlens.alignment.report.document import write_alignment as write_alignment
