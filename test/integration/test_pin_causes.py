# SPDX-License-Identifier: ISC
"""pin_causes: for what servers stay with their clients, values of sequences too."""

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import ServerError
from support.process import free_port, wait_until
from support.session_state.kinds import SUPERUSER

CAUSES = {
    # What makes the state, and what ends it; LOAD ends with its client.
    "temporary object": ("CREATE TEMP TABLE t (a int)", "DROP TABLE t"),
    "advisory lock": ("SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)"),
    "cursor with hold": ("DECLARE c CURSOR WITH HOLD FOR SELECT 0", "CLOSE c"),
    "prepared statement": ("DO $$ BEGIN EXECUTE 'PREPARE p AS SELECT 1'; END $$", "DEALLOCATE p"),
    "listen": ("LISTEN c", "UNLISTEN c"),
    "load": ("LOAD 'plpgsql'", None),
    "sequence value": ("SELECT nextval('drawn')", "DISCARD SEQUENCES"),
}
USUAL = ", ".join(cause for cause in CAUSES if cause != "sequence value")
ALL = ", ".join(CAUSES)


@pytest.fixture(scope="module")
def drawn(shared_cluster):
    """A sequence, and tables whose columns draw from sequences."""
    with shared_cluster.connect("main") as connection:
        connection.execute(
            "CREATE SEQUENCE drawn;"
            "CREATE TABLE drawn_serial (id serial, a int UNIQUE);"
            "CREATE TABLE drawn_identity (id int GENERATED ALWAYS AS IDENTITY, a int);"
            "CREATE PROCEDURE draw() LANGUAGE sql AS 'SELECT nextval(''drawn'')';"
            "GRANT ALL ON SEQUENCE drawn, drawn_serial_id_seq, drawn_identity_id_seq TO PUBLIC;"
            "GRANT ALL ON drawn_serial, drawn_identity TO PUBLIC")
    yield
    with shared_cluster.connect("main") as connection:
        connection.execute("DROP TABLE drawn_serial, drawn_identity; DROP PROCEDURE draw; DROP SEQUENCE drawn")


@pytest.fixture
def new_pool(new_pooler, drawn):
    """A pooler of two servers with these causes: new_pool(causes, **settings)."""
    def make(causes, **settings):
        return new_pooler({
            "pool_mode": "transaction", "default_pool_size": 2, "max_pinned": 2, "listen": "pin",
            "pin_causes": causes, **settings,
        }, auth={SUPERUSER: ""})

    return make


def causes_of(pooler):
    return [row["cause"] for row in pooler.show("PINS")]


def warnings(client):
    """The texts of the WARNINGs that come with the next answer."""
    return [notice["M"] for notice in client.query("SELECT 1").notices]


@pytest.mark.setting("pin_causes")
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_is_listed_pins(new_pool, cause):
    make, end = CAUSES[cause]
    port = free_port()
    pool = new_pool(f" {cause.upper()} ", metrics_port=port)
    client = pool.client(SUPERUSER)
    for _ in range(2):
        client.query(make if end is None or not causes_of(pool) else "SELECT 1")
        assert warnings(client) == []
        assert causes_of(pool) == [cause]
    assert scrape(port).value("pgusher_pins_total", database="main", user=SUPERUSER, cause=cause) == 1
    if end:
        client.query(end)
        client.query("SELECT 1")
    else:
        client.leave()
    wait_until(lambda: pool.show("PINS") == [])


@pytest.mark.setting("pin_causes")
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_is_not_listed_pins_nothing_and_is_told_once(new_pool, cause):
    make, _ = CAUSES[cause]
    others = ",".join(each for each in USUAL.split(", ") if each != cause)
    pool = new_pool(others, default_pool_size=1, max_pinned=1)
    client, other = pool.client(SUPERUSER), pool.client(SUPERUSER)
    told = [f"not in pin_causes: {cause} will not be there in the next transaction"]
    # It is drawn in silence: that is what PgBouncer's clients know.
    expected = [] if cause == "sequence value" else told
    for _ in range(2):
        client.query(make)
        assert warnings(client) == expected
        assert pool.show("PINS") == []
        assert left_of(other) == ["0"] * len(LEFT)
        expected = []


LEFT = (
    "SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    "SELECT count(*) FROM pg_cursors WHERE is_holdable",
    "SELECT count(*) FROM pg_prepared_statements WHERE from_sql",
    "SELECT count(*) FROM pg_listening_channels()",
)


def left_of(client):
    """What the session of this client's server has of its last client."""
    return [client.value(sql) for sql in LEFT]


def test_the_cause_that_is_listed_is_told_of_several(new_pool):
    port = free_port()
    pool = new_pool("advisory lock", metrics_port=port)
    client = pool.client()
    client.query("BEGIN; CREATE TEMP TABLE t (a int); SELECT pg_advisory_lock(7); COMMIT")
    assert warnings(client) == []
    assert left_of(client)[:2] == ["1", "1"]
    assert causes_of(pool) == ["advisory lock"]
    page = scrape(port)
    assert page.value("pgusher_pins_total", database="main", user="app", cause="advisory lock") == 1
    client.query("SELECT pg_advisory_unlock(7)")
    assert warnings(client) == ["not in pin_causes: temporary object will not be there in the next transaction"]
    assert left_of(client)[:2] == ["0", "0"]


def test_without_causes_nothing_pins(new_pool):
    pool = new_pool("")
    client = pool.client(SUPERUSER)
    for make, _ in CAUSES.values():
        client.query(make)
        client.query("SELECT 1")
        assert pool.show("PINS") == []
    assert left_of(client) == ["0"] * len(LEFT)


def test_what_is_not_listed_stays_beside_what_pins(new_pool):
    pool = new_pool("temporary object", default_pool_size=1, max_pinned=1)
    client = pool.client(SUPERUSER)
    client.query("SELECT pg_advisory_lock(7)")
    assert len(warnings(client)) == 1
    client.query("CREATE TEMP TABLE t (a int)")
    client.query("SELECT pg_advisory_lock(7)")
    client.query("LOAD 'plpgsql'")
    backend = client.value("SELECT pg_backend_pid()")
    assert warnings(client) == []
    assert left_of(client)[:2] == ["1", "1"]
    assert causes_of(pool) == ["temporary object"]
    client.query("DROP TABLE t")
    # The lock was told before, the library was not.
    client.query("SELECT 1")
    assert pool.show("PINS") == []
    assert left_of(client)[:2] == ["0", "0"]
    assert client.value("SELECT pg_backend_pid()") != backend


@pytest.mark.parametrize("value", ["temp", "listen,", ", listen", "listen load", "listen,,load"])
def test_other_names_are_refused(new_pool, value):
    pool = new_pool(USUAL)
    pool.settings["pin_causes"] = value
    pool.write_config()
    pool.allow("invalid value")
    with pytest.raises(ServerError, match="RELOAD failed"):
        pool.command("RELOAD")
    assert pool.lines(
        f'invalid value "{value}" for parameter pin_causes in configuration .*: allowed is a list,'
        " separated by commas, of: temporary object, advisory lock, cursor with hold, prepared"
        " statement, listen, load, sequence value$")
    assert pool.setting("pin_causes") == USUAL


# --- values of sequences --------------------------------------------------------------------------

# What draws from a sequence, and which one.
DRAWS = {
    "nextval": ("SELECT nextval('drawn')", "drawn"),
    "setval": ("SELECT setval('drawn', nextval('drawn'))", "drawn"),
    "a quoted name": ("SELECT pg_catalog.\"nextval\"('drawn')", "drawn"),
    "escapes": ("SELECT U&\"next\\0076al\"('drawn')", "drawn"),
    "serial": ("INSERT INTO drawn_serial DEFAULT VALUES", "drawn_serial_id_seq"),
    "identity": ("insert into drawn_identity (a) VALUES (1)", "drawn_identity_id_seq"),
    "WITH": ("WITH a AS (INSERT INTO drawn_serial DEFAULT VALUES RETURNING id) SELECT * FROM a",
             "drawn_serial_id_seq"),
    "COPY": ("COPY drawn_identity (a) FROM PROGRAM 'echo 1'", "drawn_identity_id_seq"),
    "DO": ("DO $$ BEGIN EXECUTE 'SELECT next' || 'val(''drawn'')'; END $$", "drawn"),
    "CALL": ("CALL draw()", "drawn"),
    "a long text": (f"INSERT INTO drawn_serial DEFAULT VALUES /* {'x' * 100000} */", "drawn_serial_id_seq"),
}


def simple(client, sql):
    client.query(sql)


def extended(client, sql):
    client.send(wire.extended(sql) + wire.sync())
    client.checked()


def prepared(client, sql):
    """The statement is prepared in a transaction before, and what that pins has ended."""
    client.send(wire.parse(sql, "s"), wire.sync())
    client.checked()
    client.query("DISCARD SEQUENCES")
    client.query("SELECT 1")
    client.send(wire.bind([], "s"), wire.execute(), wire.sync())
    client.checked()


def prepared_by_sql(client, sql):
    client.query(f"PREPARE s AS {sql}")
    client.query("DISCARD SEQUENCES")
    client.query("SELECT 1")
    client.query("EXECUTE s")


def in_a_transaction(client, sql):
    client.query("BEGIN")
    client.query(sql)
    client.query("COMMIT")


def rolled_back(client, sql):
    client.query("BEGIN")
    client.query(sql)
    client.query("ROLLBACK")


WAYS = {each.__name__: each for each in
        (simple, extended, prepared, prepared_by_sql, in_a_transaction, rolled_back)}
NOT_PREPARED_BY_SQL = ("COPY", "DO", "CALL", "escapes")


@pytest.fixture
def drawing(new_pool):
    """A pooler whose clients use currval()."""
    return new_pool(ALL, default_pool_size=3, max_pinned=2)


@pytest.mark.setting("pin_causes")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("draw", DRAWS)
def test_a_client_finds_the_values_that_it_has_drawn(drawing, draw, way):
    sql, sequence = DRAWS[draw]
    if way == "prepared_by_sql" and draw in NOT_PREPARED_BY_SQL:
        sql, sequence = DRAWS["nextval"]
    one, two, three = (drawing.client(SUPERUSER) for _ in range(3))
    WAYS[way](one, sql)
    WAYS[way](two, sql)
    own, other = one.value("SELECT lastval()"), two.value("SELECT lastval()")
    assert own != other
    for _ in range(2):
        assert one.value(f"SELECT currval('{sequence}')") == own
        assert two.value(f"SELECT currval('{sequence}')") == other
        # Another client has drawn none.
        three.send(wire.query("SELECT lastval()"))
        three.result().error.is_("ERROR", "55000", "lastval is not yet defined in this session")
    assert set(causes_of(drawing)) == {"sequence value"}


def test_values_that_were_drawn_reach_no_other_client(new_pool):
    pool = new_pool(ALL, default_pool_size=1, max_pinned=1)
    for end in ("leave", "close", "DISCARD ALL", "DISCARD SEQUENCES"):
        client = pool.client()
        client.query("SELECT nextval('drawn')")
        client.query("SELECT 1")
        assert causes_of(pool) == ["sequence value"]
        if end.isupper():
            client.query(end)
            client.query("SELECT 1")
        else:
            getattr(client, end)()
        wait_until(lambda: pool.show("PINS") == [])
        other = pool.client()
        other.send(wire.query("SELECT lastval()"))
        assert other.result().error.sqlstate == "55000"
        other.leave()
        wait_until(lambda: pool.show("PINS") == [])


def test_beyond_max_pinned_the_client_is_warned_once_and_its_server_reset(new_pool):
    pool = new_pool(ALL, default_pool_size=1, max_pinned=0)
    one, two = pool.client(), pool.client()
    one.query("SELECT nextval('drawn')")
    assert warnings(one) == [
        "max_pinned is reached: sequence value will not be there in the next transaction"]
    two.send(wire.query("SELECT lastval()"))
    assert two.result().error.sqlstate == "55000"
    one.query("SELECT nextval('drawn'), set_config('app.drawn', 'one', false)")
    assert warnings(one) == []
    assert one.value("SELECT current_setting('app.drawn')") == "one"
    two.send(wire.query("SELECT lastval()"))
    assert two.result().error.sqlstate == "55000"


def test_a_pin_for_another_cause_goes_on_for_sequences(new_pool):
    pool = new_pool(ALL, default_pool_size=1, max_pinned=1)
    client = pool.client()
    client.query("CREATE TEMP TABLE t (id serial, a int)")
    client.query("INSERT INTO t DEFAULT VALUES")
    assert causes_of(pool) == ["temporary object"]
    client.query("DROP TABLE t")
    client.query("SELECT nextval('drawn')")
    value = client.value("SELECT currval('drawn')")
    assert causes_of(pool) == ["sequence value"]
    client.query("CREATE TEMP TABLE t (a int)")
    client.query("DISCARD SEQUENCES")
    client.query("SELECT 1")
    assert causes_of(pool) == ["temporary object"]
    assert int(value) > 0


def test_texts_without_these_words_pin_nothing(drawing):
    client = drawing.client()
    for sql in ("SELECT 1", "SELECT 'inserted' AS next_val", "UPDATE drawn_serial SET a = a",
                "SELECT 1 AS lastvalue", "DELETE FROM drawn_identity"):
        client.query(sql)
        extended(client, sql)
        assert drawing.show("PINS") == []


def test_without_the_cause_a_draw_pins_nothing(new_pool):
    pool = new_pool(USUAL)
    client = pool.client(SUPERUSER)
    for sql, _ in DRAWS.values():
        client.query(sql)
        assert warnings(client) == []
        assert pool.show("PINS") == []


@pytest.mark.setting("pin_causes")
def test_a_reload_counts_for_the_next_transactions(new_pool):
    pool = new_pool(USUAL, default_pool_size=2, max_pinned=2)
    client = pool.client()
    client.send(wire.parse("INSERT INTO drawn_serial DEFAULT VALUES", "s"), wire.sync())
    client.checked()

    def insert():
        client.send(wire.bind([], "s"), wire.execute(), wire.sync())
        client.checked()
        return client.query("SELECT 1")

    insert()
    backend = client.value("SELECT pg_backend_pid()")
    assert pool.show("PINS") == []
    pool.settings["pin_causes"] = ALL
    pool.reload()
    # Servers with values of unknown clients are not used again.
    assert client.value("SELECT pg_backend_pid()") != backend
    insert()
    assert causes_of(pool) == ["sequence value"]
    pool.settings["pin_causes"] = USUAL
    pool.reload()
    result = client.query("SELECT 1")
    result.notices += client.query("SELECT 1").notices
    assert [notice["M"] for notice in result.notices] == [
        "pin_causes has changed: sequence value will not be there in the next transaction"]
    assert pool.show("PINS") == []


def test_a_reload_counts_where_functions_are_watched(new_pool, cluster):
    """Then prepared statements were looked at before."""
    cluster.ask("main", "CREATE FUNCTION enter_drawn() RETURNS text LANGUAGE sql"
                " AS $$ SELECT set_config('app.drawn', 'a', false) $$")
    try:
        pool = new_pool(USUAL, session_functions_refresh=3600)
        client = pool.client()
        client.send(wire.parse("INSERT INTO drawn_serial DEFAULT VALUES", "s"), wire.sync())
        client.checked()
        for expected in ([], ["sequence value"]):
            client.send(wire.bind([], "s"), wire.execute(), wire.sync())
            client.checked()
            client.query("SELECT 1")
            assert causes_of(pool) == expected
            pool.settings["pin_causes"] = ALL
            pool.reload()
    finally:
        cluster.ask("main", "DROP FUNCTION enter_drawn()")


def test_the_process_that_takes_over_knows_of_the_values(new_pool):
    pool = new_pool(ALL)
    client = pool.client()
    client.query("SELECT nextval('drawn')")
    value = client.value("SELECT currval('drawn')")
    pool.take_over().wait(15)
    assert causes_of(pool) == ["sequence value"]
    assert client.value("SELECT currval('drawn')") == value


def test_with_other_session_states_sequences_pin_nothing(new_pool):
    for state in ("error", "warn", "ignore"):
        pool = new_pool(ALL, session_state=state)
        client = pool.client()
        client.query("INSERT INTO drawn_serial DEFAULT VALUES")
        assert warnings(client) == []
        assert pool.show("PINS") == []
