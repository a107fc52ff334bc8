"""The explorer: a page in the browser where several people trace texts, served from one computer.

Room: HTTP in front of lens and views. Models run in worker processes; the server itself imports no torch.
"""

from normlens.explorer.refusal import ServerError as ServerError
from normlens.explorer.settings import Allowed as Allowed
from normlens.explorer.settings import Limits as Limits
from normlens.explorer.settings import Settings as Settings
from normlens.explorer.settings import allowed as allowed
from normlens.explorer.start import serve as serve
