"""Text whose tokens have signed scores: as a page, a drawing, or lines of a terminal."""

from normlens.views.highlights.data import Highlight as Highlight
from normlens.views.highlights.data import Highlights as Highlights
from normlens.views.highlights.data import Token as Token
from normlens.views.highlights.files import save_highlights as save_highlights
from normlens.views.highlights.page import highlights_fragment as highlights_fragment
from normlens.views.highlights.page import highlights_page as highlights_page
from normlens.views.highlights.text import highlights_text as highlights_text
