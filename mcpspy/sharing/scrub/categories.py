"""What a scrub replaces: the categories, their rules for `scrub --check`, and the labels.

A label is lower-case ASCII without a space, so it stays unchanged in JSON, in URLs and in HTTP heads. No label matches
the table of secrets: a scrubbed capture passes the check, and a second scrub changes nothing.
"""

import re
from typing import NamedTuple

from mcpspy.secrets.patterns import Kind


class Category(NamedTuple):
    """A category of replaced values."""

    rule: str
    """The id in reports of `scrub --check`; empty for values that a scrub renames without a finding."""
    title: str
    """The name for people."""
    stem: str
    """The beginning of a label."""
    ending: str = ""
    """The end of a label."""


VALUE = Category("scrub/value-under-secret-name", "value under a secret name", "redacted-value-")
EMAIL = Category("scrub/email", "e-mail address", "email-", "@redacted.invalid")
HOME = Category("scrub/home-directory", "home directory", "user-")
USER = Category("scrub/user-name", "user name", "user-")
MATCH = Category("scrub/replaced", "match of --replace", "redacted-match-")
SESSION = Category("", "session id", "session-")
STATE = Category("", "requestState", "state-")
WITHHELD = Category("scrub/not-decoded", "frame that was not decoded", "withheld-")

RULES = {
    "scrub/secret": "A capture holds a secret of a known kind.",
    VALUE.rule: "A capture holds a value under the name of a secret.",
    EMAIL.rule: "A capture holds an e-mail address.",
    HOME.rule: "A capture holds a path in the home directory of a person.",
    USER.rule: "A capture holds the name of a user.",
    MATCH.rule: "A capture holds what --replace names.",
    WITHHELD.rule: "A capture holds a frame that cannot be searched: it was not decoded.",
}
"""The summary of each rule of `scrub --check`."""


def of_token(kind: Kind) -> Category:
    """Return the category of a kind of token."""
    if kind.kept:  # behind a host: the label must be shorter than a secret there
        return Category("scrub/secret", kind.name, "redacted-url-")
    plain = kind.name.rpartition("similar ")[2]
    return Category("scrub/secret", kind.name, f"redacted-{'-'.join(re.findall('[a-z0-9]+', plain.lower()))}-")


LABEL = re.compile(
    r"redacted-(?:[a-z0-9]+-)+\d+|(?:user|session|state)-\d+|email-\d+@redacted\.invalid|«(?:redacted|withheld):[^»]*»"
)
"""A replacement made by a recording or a scrub."""
