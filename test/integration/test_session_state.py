# SPDX-License-Identifier: ISC
"""Settings in transaction mode: they follow the client that has SET them, and reach no other."""

import pytest

from support import wire
from support.session_state.runs import RUNS


@pytest.fixture
def pair(new_pooler, cluster):
    """Two clients that share one server."""
    cluster.sql("GRANT bob TO app")
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    yield pooler.client(), pooler.client()
    cluster.sql("REVOKE bob FROM app")


SETS = [
    ("SET statement_timeout = 5000", "statement_timeout", "5s", "0"),
    ("SET work_mem TO '77MB'", "work_mem", "77MB", "4MB"),
    ("SET app.tenant = 'Ärger'", "app.tenant", "Ärger", ""),
    ("SET ROLE bob", "role", "bob", "none"),
    ("SET SESSION lock_timeout = '3s'", "lock_timeout", "3s", "0"),
    ("SET search_path = a, \"B\"", "search_path", 'a, "B"', '"$user", public'),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
     "default_transaction_isolation", "serializable", "read committed"),
    ("DO $$ BEGIN PERFORM set_config('work_mem', '66MB', false); END $$", "work_mem", "66MB", "4MB"),
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("sql,name,value,usual", SETS)
def test_a_setting_follows_its_client(pair, run, sql, name, value, usual):
    one, two = pair
    RUNS[run](one, sql)
    show = f"SELECT current_setting('{name}', true)"
    for _ in range(2):
        assert (two.value(show) or "") == usual
        assert one.value(show) == value


@pytest.mark.parametrize("sql,name,value,usual", SETS)
def test_a_setting_that_was_rolled_back_is_gone(pair, sql, name, value, usual):
    one, two = pair
    show = f"SELECT current_setting('{name}', true)"
    one.query("BEGIN")
    one.query(sql)
    one.query("ROLLBACK")
    assert (one.value(show) or "") == usual
    one.query("BEGIN")
    one.query("SAVEPOINT a")
    one.query(sql)
    one.query("ROLLBACK TO a")
    one.query("COMMIT")
    for client in (one, two, one):
        assert (client.value(show) or "") == usual


def test_a_setting_ends_with_reset(pair):
    one, two = pair
    one.query("SET work_mem = '77MB'; SET app.x = '1'")
    one.query("RESET ALL")
    for client in (two, one):
        assert client.value("SHOW work_mem") == "4MB"


def test_a_check_of_startup_parameters_runs_as_the_user_of_the_pool(new_pooler, cluster):
    cluster.sql("GRANT bob TO app")
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    one = pooler.client()
    one.query("SET ROLE bob")
    other = pooler.client(search_path="one, two", work_mem="5MB")
    assert other.value("SELECT current_user") == "app"
    assert other.value("SHOW work_mem") == "5MB"
    assert one.value("SELECT current_user") == "bob"
    cluster.sql("REVOKE bob FROM app")


def test_messages_right_behind_a_set_wait_for_the_answer(pair):
    one, two = pair
    one.send(wire.query("SET work_mem = '77MB'") + wire.query("SHOW work_mem") + wire.query("SELECT 1"))
    assert one.result().tag == "SET"
    assert two.value("SHOW work_mem") == "4MB"
    assert one.result().value == "77MB"
    assert one.result().value == "1"


@pytest.mark.setting("session_state")
@pytest.mark.parametrize("before", ["ignore", "warn"])
def test_what_was_left_before_a_reload_reaches_no_client(new_pooler, before):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "session_state": before})
    pooler.allow("session_state is warn")
    one = pooler.client()
    one.query("SET work_mem = '77MB'")
    one.query("CREATE TEMP TABLE t (a int)")
    one.query("SELECT pg_advisory_lock(7)")
    pooler.settings["session_state"] = "follow"
    pooler.reload()
    two = pooler.client()
    for client in (two, one) if before == "ignore" else (two,):
        assert client.value("SHOW work_mem") == "4MB"
        assert client.value(
            "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())"
            " + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND pid = pg_backend_pid())") == "0"


@pytest.mark.setting("session_state")
def test_what_was_left_before_a_takeover_reaches_no_client(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "session_state": "ignore"})
    one = pooler.client()
    one.query("SET work_mem = '77MB'")
    pooler.settings["session_state"] = "follow"
    pooler.write_config()
    pooler.take_over()
    for client in (pooler.client(), one):
        assert client.value("SHOW work_mem") == "4MB"
