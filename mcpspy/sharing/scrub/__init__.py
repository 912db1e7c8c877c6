"""Removes secrets and personal data from captures, so that they can be given to others."""

from mcpspy.sharing.scrub.scrub import Replaced, Scrub, ScrubbedPlace
from mcpspy.sharing.scrub.texts import ScrubOptions
from mcpspy.sharing.scrub.values import Leftover

__all__ = ["Leftover", "Replaced", "Scrub", "ScrubOptions", "ScrubbedPlace"]
