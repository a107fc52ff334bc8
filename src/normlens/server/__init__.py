"""The explorer: a page where several people look at what models move, served from one computer."""

from normlens.server.allowed import Allowed as Allowed
from normlens.server.allowed import allowed as allowed
from normlens.server.refusal import ServerError as ServerError
from normlens.server.run import serve as serve
from normlens.server.settings import Limits as Limits
from normlens.server.settings import Settings as Settings
