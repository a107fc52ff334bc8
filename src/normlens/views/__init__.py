"""Result to picture: numpy in, text, HTML, SVG or PNG out. Knows no model, no torch, no network."""

from normlens.views.figure import Figure as Figure
from normlens.views.figure import Side as Side
from normlens.views.html import fragment as fragment
from normlens.views.html import page as page
from normlens.views.look import Look as Look
from normlens.views.maps import FigureError as FigureError
from normlens.views.maps import Map as Map
from normlens.views.maps import Panel as Panel
from normlens.views.maps import attention as attention
from normlens.views.payload import Packed as Packed
from normlens.views.payload import exact as exact
from normlens.views.payload import packed as packed
from normlens.views.shares import Received as Received
from normlens.views.shares import received as received
from normlens.views.text import heatmap as heatmap
from normlens.views.text import summary as summary
