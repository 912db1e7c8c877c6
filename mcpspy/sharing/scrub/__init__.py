"""Removes secrets and personal data from captures, so that they can be given to others."""

from mcpspy.sharing.scrub.leftovers import Leftover
from mcpspy.sharing.scrub.options import ScrubOptions
from mcpspy.sharing.scrub.scrub import Replaced, Scrub, ScrubbedPlace

__all__ = ["Leftover", "Replaced", "Scrub", "ScrubOptions", "ScrubbedPlace"]
