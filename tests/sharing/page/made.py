"""A page made of a capture, for tests of what stands in it."""

import base64
import gzip
import hashlib
import json
import re
from itertools import groupby
from pathlib import Path

from mcpspy.capture.location import list_captures  # noqa: F401
