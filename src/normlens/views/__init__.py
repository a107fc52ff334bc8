"""Result to picture: numpy in, text, HTML, SVG or PNG out.

Room: views. Knows no model and no network; imports neither torch nor matplotlib before something is drawn.
"""

from normlens.views.figure import Figure as Figure
from normlens.views.figure import Side as Side
from normlens.views.files import DRAWN as DRAWN
from normlens.views.files import FORMS as FORMS
from normlens.views.files import either as either
from normlens.views.glyphs import fit as fit
from normlens.views.glyphs import visible as visible
from normlens.views.glyphs import width as width
from normlens.views.highlights import Highlight as Highlight
from normlens.views.highlights import Highlights as Highlights
from normlens.views.highlights import Token as Token
from normlens.views.highlights import highlights_fragment as highlights_fragment
from normlens.views.highlights import highlights_text as highlights_text
from normlens.views.highlights import save_highlights as save_highlights
from normlens.views.html import asset as asset
from normlens.views.html import fragment as fragment
from normlens.views.html import page as page
from normlens.views.look import Hidden as Hidden
from normlens.views.look import Look as Look
from normlens.views.look import View as View
from normlens.views.maps import FigureError as FigureError
from normlens.views.maps import Map as Map
from normlens.views.maps import Panel as Panel
from normlens.views.maps import attention as attention
from normlens.views.maps import quantity_maps as quantity_maps
from normlens.views.payload import Packed as Packed
from normlens.views.payload import exact as exact
from normlens.views.payload import exact_lines as exact_lines
from normlens.views.payload import packed as packed
from normlens.views.plots.paint import ACCENT as ACCENT
from normlens.views.plots.paint import FAINT as FAINT
from normlens.views.plots.paint import INK as INK
from normlens.views.plots.paint import MUTED as MUTED
from normlens.views.plots.paint import NORM as NORM
from normlens.views.plots.paint import PALE as PALE
from normlens.views.plots.paint import SIGNED as SIGNED
from normlens.views.plots.paint import WEIGHT as WEIGHT
from normlens.views.plots.paint import label as label
from normlens.views.plots.paint import ramp as ramp
from normlens.views.plots.paint import steps as steps
from normlens.views.plots.paint import token_label as token_label
from normlens.views.plots.paint import width_of as width_of
from normlens.views.plots.style import WIDTH as WIDTH
from normlens.views.plots.style import DrawingMissing as DrawingMissing
from normlens.views.plots.style import Form as Form
from normlens.views.plots.style import check as check
from normlens.views.plots.style import check as check_drawing  # noqa: F401
from normlens.views.plots.style import house_style as house_style
from normlens.views.plots.style import written as written
from normlens.views.shares import Received as Received
from normlens.views.shares import received as received
from normlens.views.text import heatmap as heatmap
from normlens.views.text import summary as summary
from normlens.views.text import visible_line as visible_line
