"""Result to picture: numpy in, text or HTML out. Knows no model, no torch, no network."""

from normlens.views.figure import Figure as Figure
from normlens.views.figure import FigureError as FigureError
from normlens.views.figure import Panel as Panel
from normlens.views.figure import Side as Side
from normlens.views.html import fragment as fragment
from normlens.views.html import page as page
from normlens.views.shares import Received as Received
from normlens.views.shares import received as received
from normlens.views.text import heatmap as heatmap
from normlens.views.text import summary as summary
