"""`python -m mcpspy`."""

import sys

from mcpspy.cli import main

sys.exit(main())
