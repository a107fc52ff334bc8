"""The explorer: a page where several people look at what models move, served from one computer."""

from normlens.explorer.allowed import Allowed as Allowed
from normlens.explorer.allowed import allowed as allowed
from normlens.explorer.refusal import ServerError as ServerError
from normlens.explorer.run import serve as serve
from normlens.explorer.settings import Limits as Limits
from normlens.explorer.settings import Settings as Settings
