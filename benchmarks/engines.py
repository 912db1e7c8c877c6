"""Queries of ClickHouse and Spark over the Parquet export, in an interpreter that has `chdb` and `pyspark`.

A program gets the directory of the export and an object of queries (JSON), and prints an object with the rows of each
query. Each table has a view of the same name, so the same query runs in all engines and in `mcpspy sql`.
"""

import json
from collections.abc import Mapping

CLICKHOUSE = """
import json, os, sys
from chdb.session import Session
session = Session()
for table in os.listdir(sys.argv[1]):
    source = f"file('{sys.argv[1]}/{table}/**/*.parquet', 'Parquet')"
    session.query(f"CREATE VIEW {table} AS SELECT * FROM {source}")
rows = {name: session.query(query, "JSONCompact").bytes() for name, query in json.loads(sys.argv[2]).items()}
print(json.dumps({name: json.loads(found)["data"] for name, found in rows.items()}))
"""
SPARK = """
import json, os, sys
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
for table in os.listdir(sys.argv[1]):
    session.read.parquet(f"{sys.argv[1]}/{table}").createOrReplaceTempView(table)
rows = {name: session.sql(query).collect() for name, query in json.loads(sys.argv[2]).items()}
print(json.dumps({name: [list(row) for row in found] for name, found in rows.items()}))
session.stop()
"""
"""Two executors, each in its own process."""
PROGRAMS = {"clickhouse": CLICKHOUSE, "spark": SPARK}


def command(python: str, engine: str, folder: str, queries: Mapping[str, str]) -> list[str]:
    """Return the argv of an engine that answers queries. The last line of its output is for `answers`."""
    return [python, "-c", PROGRAMS[engine], folder, json.dumps(queries)]


def answers(output: str) -> dict[str, list[list[object]]]:
    """Return the rows of each query in the output of an engine."""
    return json.loads(output.splitlines()[-1])
