"""`python -m normlens`: the same as the command `normlens`."""

import sys

from normlens.cli.main import main

sys.exit(main())
