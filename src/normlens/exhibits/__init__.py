"""Results as plain data to read: sections of sentences, tables and figures, and one way to show them in each place.

Room: what is shown. A section knows no HTML and no matplotlib; the page, the terminal and the files know no study.
"""

from normlens.exhibits.document import Article as Article
from normlens.exhibits.document import Chapter as Chapter
from normlens.exhibits.document import Document as Document
from normlens.exhibits.document import Exhibit as Exhibit
from normlens.exhibits.document import Section as Section
from normlens.exhibits.figures import Bar as Bar
from normlens.exhibits.figures import Bars as Bars
from normlens.exhibits.figures import Cloud as Cloud
from normlens.exhibits.figures import Edge as Edge
from normlens.exhibits.figures import Figure as Figure
from normlens.exhibits.figures import Frame as Frame
from normlens.exhibits.figures import Graph as Graph
from normlens.exhibits.figures import Grid as Grid
from normlens.exhibits.figures import Grids as Grids
from normlens.exhibits.figures import LinePanel as LinePanel
from normlens.exhibits.figures import Lines as Lines
from normlens.exhibits.figures import Node as Node
from normlens.exhibits.figures import Scatter as Scatter
from normlens.exhibits.figures import ScatterPanel as ScatterPanel
from normlens.exhibits.figures import Series as Series
from normlens.exhibits.figures import Strip as Strip
from normlens.exhibits.figures import StripPanel as StripPanel
from normlens.exhibits.figures import hatched as hatched
from normlens.exhibits.figures import slug as slug
from normlens.exhibits.figures import top_of as top_of
from normlens.exhibits.files import ReportError as ReportError
from normlens.exhibits.files import as_csv as as_csv
from normlens.exhibits.files import as_json as as_json
from normlens.exhibits.files import drawn as drawn
from normlens.exhibits.files import write as write
from normlens.exhibits.files import write_file as write_file
from normlens.exhibits.html import page as page
from normlens.exhibits.html import script_hash as script_hash
from normlens.exhibits.numbers import DASH as DASH
from normlens.exhibits.numbers import count as count
from normlens.exhibits.numbers import head_name as head_name
from normlens.exhibits.numbers import listing as listing
from normlens.exhibits.numbers import many as many
from normlens.exhibits.numbers import number as number
from normlens.exhibits.numbers import percent as percent
from normlens.exhibits.numbers import plain as plain
from normlens.exhibits.numbers import rho as rho
from normlens.exhibits.numbers import span as span
from normlens.exhibits.plots import draw as draw
from normlens.exhibits.table import Cell as Cell
from normlens.exhibits.table import Column as Column
from normlens.exhibits.table import ExhibitError as ExhibitError
from normlens.exhibits.table import Form as Form
from normlens.exhibits.table import Row as Row
from normlens.exhibits.table import Table as Table
from normlens.exhibits.terminal import bullet as bullet
from normlens.exhibits.terminal import show as show
from normlens.exhibits.terminal import text_table as text_table
