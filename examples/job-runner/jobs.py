"""A job: reads records, sums them in a database in memory, and prints the result."""

import asyncio  # noqa: F401 - what jobs of a real runner import, and most of their time
import decimal
import email.message  # noqa: F401
import http.client  # noqa: F401
import json
import sqlite3
import sys
import unittest.mock  # noqa: F401
import xml.dom.minidom  # noqa: F401


def main(arguments: list[str]) -> int:
    number = int(arguments[0])
    records = json.loads(json.dumps([{"amount": f"{number}.{cent:02}"} for cent in range(100)]))
    with sqlite3.connect(":memory:") as database:
        database.execute("create table records (cents integer)")
        cents = [(int(decimal.Decimal(record["amount"]) * 100),) for record in records]
        database.executemany("insert into records values (?)", cents)
        (total,) = database.execute("select sum(cents) from records").fetchone()
    print(f"job {number}: {total} cents", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
