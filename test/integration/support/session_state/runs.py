# SPDX-License-Identifier: ISC
"""Ways to run a statement that has no result: by each protocol, and in a transaction block."""


def _in_a_transaction(client, sql):
    client.query("BEGIN")
    client.query(sql)
    client.query("COMMIT")


# run(client, sql) by its name.
RUNS = {
    "simple": lambda client, sql: client.query(sql),
    "extended": lambda client, sql: client.extended(sql),
    "transaction": _in_a_transaction,
}
