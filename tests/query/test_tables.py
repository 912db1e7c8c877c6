"""The page and the files have the same columns."""

import re
from contextlib import closing
from pathlib import Path

import pytest

from mcpspy.query.build import connection
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.tables import TABLES, documented

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUERIES = re.findall(r"\n([^\n]+):\n\n```sql\n(.*?)```", TEXT.split("## Ten queries")[1].split("\n## ")[0], re.DOTALL)


def test_the_page_has_the_tables():
    assert documented(TEXT) == TEXT, "write it again: scripts/write-rules"


def test_a_table_has_no_two_columns_of_one_name():
    for table in TABLES.values():
        assert len({column.name for column in table.columns}) == len(table.columns)


@pytest.mark.parametrize("name", TABLES)
def test_the_files_have_the_columns_with_their_types(golden, name):
    with closing(connection()) as database:
        for captured in golden.values():
            found = database.execute(f"DESCRIBE FROM '{captured.file(name)}'").fetchall()
            assert [(column, kind) for column, kind, *_ in found] == [it[:2] for it in TABLES[name].columns]


def test_there_are_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_the_queries_of_the_page_find_something(golden, tmp_path, title, query):
    query = query.replace("calls >= 10", "calls >= 1")  # golden captures are short
    with closing(CaptureDatabase(list(golden.values()), str(tmp_path))) as database:
        assert list(database.texts(query)[1])
