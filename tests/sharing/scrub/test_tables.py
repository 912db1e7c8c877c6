"""Values below the name of a secret in another line (A-17)."""

import pytest

from mcpspy.sharing.scrub.tables import redacted_tables


def shown(text):
    return redacted_tables(text, lambda _: "M")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user,password\nbob,zebra\nal,cat9", "user,password\nbob,M\nal,M"),
        ('"user";"api_key"\n"bob";"a1b2c3"', '"user";"api_key"\n"bob";"M"'),
        ("user\tPasswort\nbob\tzebra", "user\tPasswort\nbob\tM"),
        ("| user | password |\n|---|---|\n| bob | zebra |", "| user | password |\n|---|---|\n| bob | M |"),
        (" user | token \n------+------\n bob  | a1b2c3d4 ", " user | token \n------+------\n bob  | M "),
        ('[password]\nvalue = "zebra"\n[b]\nc = "d"', '[password]\nvalue = "M"\n[b]\nc = "d"'),
        ("[db.credentials]\na = hunter2", "[db.credentials]\na = M"),
        ("password:\n  prod: zebra\n  dev: 'cat'\nb: c", "password:\n  prod: M\n  dev: 'M'\nb: c"),
        ("key,a\nZk39dKw02Lq8Xm4Pt7Vb1,b", "key,a\nM,b"),
        ("  secrets:\n    - hunter2\n  b: hunter3", "  secrets:\n    - M\n  b: hunter3"),
    ],
)
def test_a_value_is_replaced(text, expected):
    """A-17."""
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "password",
        "user,password\nbob",
        "Enter the user, the password\nand the name, please",
        "| name | key |\n|---|---|\n| up | ArrowUp |",
        "| a | password |\n| b | c |",
        "| feature | password |\n|---|---|\n| login | required |\n| guest | no |",
        "password:\n  type: string\n  description: at least 8 characters\n  minLength: 8",
        "token:\n  name: the\nb: c",
        "| Key | Summary |\n|---|---|\n| PROJ-123 | a |\n| PROJ-4567 | b |",
        "Keys,Action\nCtrl+F12,close\nShift+F1,help",
        "token,count\nsub4word,3\nuser_1a,4",
        "tokens:\n  - user_1a\n  - step2b",
        "passwords:\n  policy: strong\n  hash: argon2id\n  min_length: 12\n  name: main\n  label: Main",
        "'A_KEY': 1,\n'B': 2,\n'C': 3,",
        "[tokens]\nthe = cat",
        "yppasswd\t100009\typpasswd\netherstatd\t100010\tetherstat",
    ],
)
def test_what_only_looks_like_a_table_stays(text):
    assert shown(text) == text


@pytest.mark.parametrize("line", ["a,password", "[password]", "password:", "|password|\n|-|", "  - "])
def test_many_tables_take_time_linear_in_their_length(line):
    """A-01."""
    shown(f"{line}\n" * 20_000)
