"""The one root error. Each kind of mistake is a subclass living where it is raised.

Room: nothing but the root, so that `except NormlensError` catches whatever normlens says no to.
"""


class NormlensError(Exception):
    """Something normlens refuses: the message says what, what was got, the usual cause, and what to do next."""
