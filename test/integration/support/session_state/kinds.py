# SPDX-License-Identifier: ISC
"""Every kind of state of a session, as data: how it is made, seen and ended.

The values are PostgreSQL's: a client that is connected to it directly must see them too.
"""

from dataclasses import dataclass

# All that a client may send its statements by; support.session_state.scenario has them.
PROTOCOLS = ("simple", "script", "extended", "named", "pipelined", "batch")
# Protocols that have values apart from the text.
BINDING = ("extended", "named", "pipelined", "batch")

RESET_ALL = ("RESET ALL", "DISCARD ALL")
DISCARD_ALL = ("DISCARD ALL",)

SUPERUSER = "harness"


@dataclass(frozen=True)
class Call:
    """A FunctionCall message, with arguments and result as text."""

    function: int
    arguments: tuple


@dataclass(frozen=True)
class Heard:
    """Instead of a query: whether the client receives what is sent to this channel."""

    channel: str


@dataclass(frozen=True)
class Kind:
    """One kind of state.

    family     settings, ways, roles, temporary, locks, cursors, prepared, channels, library
    make       statements: a text, a text with values, or a Call
    look       a query of one value; its value is the first one, "" for NULL, or ERROR and the SQLSTATE
    made       the value of look where the state is there
    none       the value where it is not
    end        statements that end this state and no other
    ended_by   statements that end all such state, each by itself
    outside    what other sessions see by a query: the query, while the state is there, and when it
               is gone
    kept       ROLLBACK does not undo it
    start      what the client asks for at its start; `none` is the value of a client that asks for
               nothing, `asked` that of one that asks for this
    """

    family: str
    name: str
    make: tuple
    look: object
    made: str
    none: str
    end: tuple = ()
    ended_by: tuple = ()
    outside: tuple = ()
    kept: bool = False
    start: tuple = ()
    asked: str = None
    user: str = "app"
    protocols: tuple = PROTOCOLS
    in_block: bool = False  # the statements work in a transaction block only
    typical: bool = False  # tried with each protocol and each end of the transaction

    @property
    def usual(self):
        """What the client itself sees without this state."""
        return self.none if self.asked is None else self.asked

    def __str__(self):
        return f"{self.family}: {self.name}"


def current(name):
    """The query for a setting's value."""
    return f"SELECT current_setting('{name}', true)"


def setting(sql, name, made, none, **more):
    """A setting that the statement sets; made == none: it does not stay."""
    more.setdefault("end", (f"RESET {name}",))
    more.setdefault("ended_by", RESET_ALL)
    more.setdefault("family", "settings")
    more.setdefault("name", sql)
    make = more.pop("make", (sql,))
    return Kind(make=make, look=current(name), made=made, none=none, **more)


def tenant(sql, made, **more):
    """A custom setting."""
    return setting(sql, "app.tenant", made, "", **more)


# --- settings by SET --------------------------------------------------------------------------

PATH = ("search_path", '"$user", public')

SETTINGS = [
    # Numbers with and without units, in another spelling than the server's.
    setting("SET work_mem TO '77MB'", "work_mem", "77MB", "4MB", typical=True),
    setting("SET work_mem = '65536kB'", "work_mem", "64MB", "4MB"),
    setting("SET SESSION work_mem = 77777", "work_mem", "77777kB", "4MB"),
    setting("SET temp_buffers = '16MB'", "temp_buffers", "16MB", "8MB"),
    setting("SET statement_timeout = '0.5min'", "statement_timeout", "30s", "0"),
    setting("SET lock_timeout = 3000", "lock_timeout", "3s", "0"),
    setting("SET idle_in_transaction_session_timeout TO '60s'",
            "idle_in_transaction_session_timeout", "1min", "0"),
    setting("SET vacuum_cost_delay = 1.5", "vacuum_cost_delay", "1500us", "0"),
    setting("SET random_page_cost = 1.10e0", "random_page_cost", "1.1", "4"),
    setting("SET geqo_seed = .25", "geqo_seed", "0.25", "0"),
    setting("SET extra_float_digits = -5", "extra_float_digits", "-5", "1"),
    setting("SET from_collapse_limit = '0x10'", "from_collapse_limit", "16", "8"),
    # Booleans and enums, as words, numbers and beginnings of words.
    setting("SET enable_seqscan = 0", "enable_seqscan", "off", "on"),
    setting("SET enable_hashjoin TO no", "enable_hashjoin", "off", "on"),
    setting("SET jit = 'of'", "jit", "off", "on"),
    setting("SET row_security = off", "row_security", "off", "on"),
    setting("SET bytea_output = 'ESCAPE'", "bytea_output", "escape", "hex"),
    setting("SET client_min_messages = ERROR", "client_min_messages", "error", "notice"),
    setting("SET plan_cache_mode TO force_custom_plan", "plan_cache_mode", "force_custom_plan",
            "auto"),
    setting("SET synchronous_commit = local", "synchronous_commit", "local", "off"),
    setting("SET XML OPTION DOCUMENT", "xmloption", "document", "content"),
    # What servers report.
    setting("SET DateStyle = German", "DateStyle", "German, DMY", "ISO, MDY"),
    setting("SET datestyle TO 'SQL', DMY", "DateStyle", "SQL, DMY", "ISO, MDY"),
    setting("SET IntervalStyle TO iso_8601", "IntervalStyle", "iso_8601", "postgres"),
    setting("SET TIME ZONE 'Asia/Tokyo'", "TimeZone", "Asia/Tokyo", "UTC", typical=True),
    setting("SET timezone TO 'america/lima'", "TimeZone", "America/Lima", "UTC"),
    setting("SET TIME ZONE -3.5", "TimeZone", "<-03:30>+03:30", "UTC"),
    setting("SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE", "TimeZone", "<+02>-02", "UTC"),
    setting("SET NAMES 'LATIN1'", "client_encoding", "LATIN1", "UTF8"),
    setting("SET client_encoding TO WIN1252", "client_encoding", "WIN1252", "UTF8"),
    setting("SET standard_conforming_strings = off", "standard_conforming_strings", "off", "on"),
    setting("SET application_name = 'the ''worker'''", "application_name", "the 'worker'", ""),
    setting("SET default_transaction_read_only = on", "default_transaction_read_only", "on", "off"),
    # Lists of names.
    setting('SET search_path = a, "B"', PATH[0], 'a, "B"', PATH[1], typical=True),
    setting("SET search_path TO 'a, b'", PATH[0], '"a, b"', PATH[1]),
    setting("SET search_path = 'a', b, public", PATH[0], "a, b, public", PATH[1]),
    setting('SET search_path = "a""b", \'Ärger\', "$user"', PATH[0], '"a""b", "Ärger", "$user"',
            PATH[1]),
    setting("SET search_path = ''", PATH[0], '""', PATH[1]),
    setting("SET search_path = pg_catalog", PATH[0], "pg_catalog", PATH[1]),
    setting("SET SCHEMA 'tenant'", PATH[0], "tenant", PATH[1]),
    # Names of objects.
    setting("SET default_tablespace = pg_default", "default_tablespace", "pg_default", ""),
    setting("SET default_text_search_config = simple", "default_text_search_config",
            "pg_catalog.simple", "pg_catalog.english"),
    # What a transaction begins with.
    setting("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "default_transaction_isolation", "serializable", "read committed"),
    setting("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "default_transaction_read_only", "on", "off"),
    setting("SET default_transaction_deferrable TO on", "default_transaction_deferrable", "on",
            "off"),
    # Custom settings, and everything that a value can be.
    tenant("SET app.tenant = 'red'", "red"),
    tenant("SET app.tenant = 'Ärger 日本'", "Ärger 日本", typical=True),
    tenant("SET app.tenant = ''", ""),
    tenant("SET app.tenant TO 'it''s \"x\" \\ y'", "it's \"x\" \\ y"),
    tenant("SET app.tenant = E'a\\tb\\u00e4\\\\'", "a\tbä\\"),
    tenant("SET app.tenant = $x$it's $$ ; --$x$", "it's $$ ; --"),
    tenant("SET app.tenant = U&'\\00e4!0041' UESCAPE '\\'", "ä!0041"),
    tenant("SET app.tenant = 17", "17"),
    tenant("SET app.tenant = -1.50", "-1.50"),
    tenant("SET app.tenant = Foo", "foo"),
    tenant("SET app.tenant = \"Foo\"", "Foo"),
    tenant("SET app.tenant = true", "true"),
    tenant('SET "App"."Tenant" = \'red\'', "red"),
    setting("SET app.a.b = 'red'", "app.a.b", "red", ""),
    # The statement in all sorts of dress.
    tenant("/* SET app.tenant = 1 /* nested */ */ SET -- x\n app . tenant\tTO\r\n'red' ; ", "red"),
    tenant("-- SET app.tenant = 1\nSET app.tenant = 'red'", "red"),
    tenant("sEt SeSsIoN aPp.TeNaNt To 'red'", "red"),
    setting('SET "work_mem" = "77MB"', "work_mem", "77MB", "4MB"),
    # What never stays.
    setting("SET LOCAL work_mem = '77MB'", "work_mem", "4MB", "4MB"),
    tenant("SET LOCAL app.tenant = 'red'", "", typical=True),
    setting("SET LOCAL search_path = a", PATH[0], PATH[1], PATH[1]),
    setting("SET LOCAL TIME ZONE 'Asia/Tokyo'", "TimeZone", "UTC", "UTC"),
    setting("SET TRANSACTION READ ONLY", "default_transaction_read_only", "off", "off"),
    setting("SET CONSTRAINTS ALL DEFERRED", "work_mem", "4MB", "4MB"),
    # Several statements that concern the same setting.
    tenant("SET, SET", "blue", make=("SET app.tenant = 'red'", "SET app.tenant = 'blue'")),
    tenant("SET, SET LOCAL", "red",
           make=("SET app.tenant = 'red'", "SET LOCAL app.tenant = 'blue'")),
    tenant("SET LOCAL, SET", "blue",
           make=("SET LOCAL app.tenant = 'red'", "SET app.tenant = 'blue'")),
    tenant("SET, RESET", "", make=("SET app.tenant = 'red'", "RESET app.tenant")),
    setting("SET, SET TO DEFAULT", "work_mem", "4MB", "4MB",
            make=("SET work_mem = '77MB'", "SET work_mem TO DEFAULT")),
    setting("SET, RESET ALL", "work_mem", "4MB", "4MB",
            make=("SET work_mem = '77MB'", "RESET ALL")),
    setting("RESET ALL, SET", "work_mem", "77MB", "4MB",
            make=("RESET ALL", "SET work_mem = '77MB'")),
    # Clients that asked for a value at their start.
    setting("SET over work_mem of the start", "work_mem", "77MB", "4MB", asked="5MB",
            make=("SET work_mem = '77MB'",), start=(("work_mem", "5MB"),), typical=True),
    setting("SET over search_path of the start", PATH[0], "a", PATH[1], asked="one, two",
            make=("SET search_path = a",), start=(("search_path", "one, two"),)),
    setting("SET over TimeZone of the start", "TimeZone", "Asia/Tokyo", "UTC",
            asked="Europe/Berlin", make=("SET TIME ZONE 'Asia/Tokyo'",),
            start=(("TimeZone", "Europe/Berlin"),)),
    setting("SET over application_name of the start", "application_name", "two", "", asked="one",
            make=("SET application_name = two",), start=(("application_name", "one"),)),
    setting("SET over options of the start", "work_mem", "77MB", "4MB", asked="6MB",
            make=("SET work_mem = '77MB'",), start=(("options", "-c work_mem=6MB"),)),
    tenant("SET over a custom setting of the start", "blue", asked="red",
           make=("SET app.tenant = 'blue'",), start=(("options", "-c app.tenant=red"),)),
]


# --- settings by other ways than SET ----------------------------------------------------------

SET_CONFIG_OID = 2078


def hidden(sql, **more):
    """A way to set a custom setting that no function of the database names."""
    return setting(sql, "app.guest", "red", "", family="ways", **more)


def way(sql, made="red", **more):
    """Another way to set a custom setting."""
    return tenant(sql, made, family="ways", **more)


CONFIG = "set_config('app.tenant', 'red', false)"

WAYS = [
    way(f"SELECT {CONFIG}", typical=True),
    way("SELECT set_config($1, $2, false)", protocols=BINDING,
        make=(("SELECT set_config($1, $2, false)", ("app.tenant", "red")),)),
    way("SELECT set_config($1, $2, $3)", protocols=BINDING,
        make=(("SELECT set_config($1, $2, $3)", ("app.tenant", "red", "f")),), typical=True),
    way("SELECT set_config('app.tenant', $1, false) without another word", "Ärger", protocols=BINDING,
        make=(("SELECT set_config('app.tenant', $1, false)", ("Ärger",)),)),
    setting(f"SELECT {CONFIG}, and of work_mem", "work_mem", "77MB", "4MB", family="ways",
            make=(f"SELECT {CONFIG}, set_config('work_mem', '78848', false)",)),
    way("SELECT set_config(..., true)", "",
        make=("SELECT set_config('app.tenant', 'red', true)",)),
    way("SELECT pg_catalog . SET_CONFIG", make=(f"SELECT pg_catalog . {CONFIG.upper()[:10]}"
                                                "('app.tenant', 'red', false)",)),
    way('SELECT "set_config"', make=("SELECT \"set_config\"('app.tenant', 'red', false)",)),
    hidden('SELECT U&"set\\005fconfig"',
           make=("SELECT U&\"set\\005fconfig\"('app.guest', 'red', false)",)),
    hidden('SELECT U&"set!005fconfig" UESCAPE',
           make=("SELECT U&\"set!005fconfig\" UESCAPE '!' ('app.guest', 'red', false)",)),
    way("SELECT set_config, comments between",
        make=("SELECT/**/set_config--x\n(/*'*/'app.tenant', 'red', false)",)),
    way("WITH ... set_config", make=(f"WITH one AS (SELECT {CONFIG}) SELECT * FROM one",)),
    way("VALUES (set_config)", make=(f"VALUES ({CONFIG})",)),
    way("TABLE of a FROM set_config", make=(f"SELECT * FROM {CONFIG} AS one",)),
    way("EXPLAIN ANALYZE SELECT set_config", make=(f"EXPLAIN ANALYZE SELECT {CONFIG}",)),
    way("COPY (SELECT set_config) TO STDOUT", make=(f"COPY (SELECT {CONFIG}) TO STDOUT",)),
    way("INSERT ... RETURNING set_config",
        make=(f"INSERT INTO doors VALUES (1) RETURNING {CONFIG}",)),
    way("SELECT 1 WHERE set_config", make=(f"SELECT 1 WHERE {CONFIG} = 'red'",)),
    hidden("a FunctionCall of set_config", protocols=("simple",),
           make=(Call(SET_CONFIG_OID, ("app.guest", "red", "f")),)),
    setting("UPDATE pg_settings", "work_mem", "77MB", "4MB", family="ways",
            make=("UPDATE pg_settings SET setting = '77MB' WHERE name = 'work_mem'",)),
    way("DO with set_config", make=(f"DO $$ BEGIN PERFORM {CONFIG}; END $$",)),
    way("DO with SET", make=("DO $$ BEGIN SET app.tenant = 'red'; END $$",), typical=True),
    hidden("DO with EXECUTE 'SET'",
           make=("DO $$ BEGIN EXECUTE 'SE' || 'T app.' || 'guest = ''red'''; END $$",)),
    way("DO with SET LOCAL", "", make=("DO $$ BEGIN SET LOCAL app.tenant = 'red'; END $$",)),
    setting("DO with SET TIME ZONE", "TimeZone", "Asia/Tokyo", "UTC", family="ways",
            make=("DO $$ BEGIN SET TIME ZONE 'Asia/Tokyo'; END $$",)),
    way("CALL of a procedure", make=("CALL enter_by_procedure('red')",)),
    way("PREPARE and EXECUTE",
        make=(f"PREPARE enter_it AS SELECT {CONFIG}", "EXECUTE enter_it", "DEALLOCATE enter_it")),
    way("a function with a SET clause", "", make=("SELECT visit('red')",)),
    setting("a function with a SET clause for work_mem", "work_mem", "4MB", "4MB", family="ways",
            make=("SELECT visit('red')",)),
    # Neither words nor tags tell these.
    way("SELECT of a function", make=("SELECT enter('red')",)),
    way("SELECT of a function, with a value", protocols=BINDING,
        make=(("SELECT enter($1)", ("red",)),)),
    way("INSERT with a trigger", make=("INSERT INTO doors_with_trigger VALUES (1)",)),
]


# --- role and session authorization -----------------------------------------------------------


def role(sql, made, **more):
    """A role that the statement sets."""
    more.setdefault("end", ("RESET ROLE",))
    return Kind(
        family="roles", name=more.pop("name", sql), make=more.pop("make", (sql,)),
        look="SELECT current_setting('role') || '/' || current_user",
        made=made, none=more.pop("none", "none/app"), ended_by=DISCARD_ALL, **more,
    )


def authorization(sql, made, **more):
    """A session authorization that the statement sets."""
    more.setdefault("end", ("RESET SESSION AUTHORIZATION",))
    more.setdefault("look", "SELECT session_user || '/' || current_user")
    return Kind(
        family="roles", name=more.pop("name", sql), make=more.pop("make", (sql,)), made=made,
        none=more.pop("none", "harness/harness"), ended_by=DISCARD_ALL, user=SUPERUSER, **more,
    )


ROLES = [
    role("SET ROLE tenant_one", "tenant_one/tenant_one", typical=True),
    role("SET SESSION ROLE 'tenant_one'", "tenant_one/tenant_one", end=("SET ROLE NONE",)),
    role('SET ROLE "Ten""ant Zwölf"', 'Ten"ant Zwölf/Ten"ant Zwölf'),
    role("SET role TO tenant_one", "tenant_one/tenant_one", end=("RESET role",)),
    role("SELECT set_config('role', 'tenant_one', false)", "tenant_one/tenant_one"),
    role("SET LOCAL ROLE tenant_one", "none/app"),
    role("SET ROLE, SET ROLE NONE", "none/app", make=("SET ROLE tenant_one", "SET ROLE NONE")),
    role("SET ROLE twice", "tenant_two/tenant_two",
         make=("SET ROLE tenant_one", "RESET ROLE", "SET ROLE tenant_two")),
    role("DO with SET ROLE", "tenant_one/tenant_one", make=("DO $$BEGIN SET ROLE tenant_one; END$$",)),
    role("SET ROLE and a setting", "tenant_one/tenant_one",
         make=("SET ROLE tenant_one", "SET work_mem = '77MB'")),
    authorization("SET SESSION AUTHORIZATION tenant_one", "tenant_one/tenant_one", typical=True),
    authorization("SET SESSION AUTHORIZATION 'tenant_one'", "tenant_one/tenant_one",
                  end=("SET SESSION AUTHORIZATION DEFAULT",)),
    authorization("SET LOCAL SESSION AUTHORIZATION tenant_one", "harness/harness"),
    authorization("SET SESSION AUTHORIZATION, SET ROLE", "tenant_one/tenant_two",
                  make=("SET SESSION AUTHORIZATION tenant_one", "SET ROLE tenant_two"),
                  end=("RESET ROLE", "RESET SESSION AUTHORIZATION")),
    authorization("a superuser's setting, SET ROLE", "replica/tenant_one",
                  make=("SET session_replication_role = replica", "SET ROLE tenant_one"),
                  none="origin/harness",
                  look="SELECT current_setting('session_replication_role') || '/' || current_user",
                  end=("RESET ROLE", "RESET session_replication_role")),
    authorization("a superuser's setting, SET SESSION AUTHORIZATION", "replica/tenant_one",
                  make=("SET session_replication_role = replica",
                        "SET SESSION AUTHORIZATION tenant_one"),
                  none="origin/harness",
                  look="SELECT current_setting('session_replication_role') || '/' || current_user",
                  end=("RESET SESSION AUTHORIZATION", "RESET session_replication_role")),
]


# --- temporary objects ------------------------------------------------------------------------

# Everything in the temporary schema, of whatever kind.
TEMPORARY_LOOK = (
    "SELECT count(*) > 0 FROM pg_depend"
    " WHERE refclassid = 'pg_namespace'::regclass AND refobjid = pg_my_temp_schema()"
)


def temporary(sql, drop="DROP TABLE desk", made="t", **more):
    """An object in the temporary schema."""
    return Kind(
        family="temporary", name=more.pop("name", sql), make=more.pop("make", (sql,)),
        look=more.pop("look", TEMPORARY_LOOK), made=made, none=more.pop("none", "f"),
        end=more.pop("end", (drop,)), ended_by=("DISCARD TEMP", "DISCARD ALL"), **more,
    )


TEMPORARY = [
    temporary("CREATE TEMP TABLE desk (a int)", typical=True),
    temporary("CREATE TEMP TABLE desk AS SELECT 77 AS a, which is read",
              make=("CREATE TEMP TABLE desk AS SELECT 77 AS a",),
              look="SELECT a FROM desk", made="77", none="ERROR 42P01"),
    temporary("CREATE TEMPORARY TABLE IF NOT EXISTS desk (a serial)"),
    temporary("create /* a */ local -- b\n temp table desk (a int)"),
    temporary("CREATE TEMP TABLE desk (a int) ON COMMIT DELETE ROWS"),
    temporary("CREATE TABLE pg_temp.desk (a int)"),
    temporary("SELECT 77 AS a INTO TEMP desk", typical=True),
    temporary("SELECT 77 AS a INTO TEMPORARY TABLE desk"),
    temporary("SELECT 77 AS a INTO pg_temp.desk"),
    temporary("CREATE TEMP VIEW desk AS SELECT 77 AS a", "DROP VIEW desk"),
    temporary("CREATE OR REPLACE TEMPORARY VIEW desk AS SELECT 77 AS a", "DROP VIEW desk"),
    temporary("CREATE TEMP SEQUENCE desk", "DROP SEQUENCE desk"),
    temporary("CREATE FUNCTION pg_temp.desk() RETURNS int LANGUAGE sql AS 'SELECT 77'",
              "DROP FUNCTION pg_temp.desk()"),
    temporary("CREATE TYPE pg_temp.desk AS (a int)", "DROP TYPE desk"),
    temporary("CREATE DOMAIN pg_temp.desk AS int", "DROP DOMAIN desk"),
    temporary("DO with CREATE TEMP TABLE", make=("DO $$BEGIN CREATE TEMP TABLE desk (a int); END$$",)),
    temporary("CREATE TABLE with search_path = pg_temp",
              make=("SET search_path = pg_temp, public", "CREATE TABLE desk (a int)"),
              end=("DROP TABLE desk", "RESET search_path")),
    temporary("two temporary tables, one of them dropped",
              make=("CREATE TEMP TABLE desk (a int)", "CREATE TEMP TABLE chair (a int)",
                    "DROP TABLE chair")),
    # What never stays.
    temporary("CREATE TEMP TABLE desk (a int) ON COMMIT DROP", made="f", end=(), typical=True),
    temporary("CREATE TEMP TABLE, DROP TABLE", made="f", end=(),
              make=("CREATE TEMP TABLE desk (a int)", "DROP TABLE desk")),
    # Neither words nor tags tell this.
    temporary("SELECT of a function that makes a temporary table", make=("SELECT furnish()",)),
]


# --- advisory locks ---------------------------------------------------------------------------

LOCK_OID = 2880  # pg_advisory_lock(bigint)
LOCKS_LOOK = (
    "SELECT count(*) FROM pg_locks"
    " WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted"
)


def lock(sql, end, made="1", key="4711", **more):
    """A session's advisory lock."""
    return Kind(
        family="locks", name=more.pop("name", sql), make=more.pop("make", (sql,)), look=LOCKS_LOOK,
        made=made, none="0", end=(end,) if isinstance(end, str) else end,
        ended_by=("SELECT pg_advisory_unlock_all()", "DISCARD ALL"), kept=made != "0",
        outside=(f"SELECT pg_try_advisory_xact_lock({key})", "f", "t") if made != "0" else (),
        **more,
    )


UNLOCK = "SELECT pg_advisory_unlock(4711)"

LOCKS = [
    *[
        lock(f"SELECT {function}({key})", f"SELECT {ends}({key})", key=key)
        for function, ends in (
            ("pg_advisory_lock", "pg_advisory_unlock"),
            ("pg_advisory_lock_shared", "pg_advisory_unlock_shared"),
            ("pg_try_advisory_lock", "pg_advisory_unlock"),
            ("pg_try_advisory_lock_shared", "pg_advisory_unlock_shared"),
        )
        for key in ("4711", "47, 11")
    ],
    lock("SELECT pg_advisory_lock($1)", UNLOCK, protocols=BINDING,
         make=(("SELECT pg_advisory_lock($1)", ("4711",)),), typical=True),
    lock("SELECT pg_catalog.\"pg_advisory_lock\"(4711)", UNLOCK),
    lock("SELECT U&\"pg!005f\" UESCAPE", UNLOCK,
         make=("SELECT U&\"pg!005fadvisor!0079_lock\" UESCAPE '!' (4711)",)),
    lock("a lock of two levels", (UNLOCK, UNLOCK),
         make=("SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_lock(4711)")),
    lock("two locks, one of them released", UNLOCK,
         make=("SELECT pg_advisory_lock(4711), pg_advisory_lock(4712)",
               "SELECT pg_advisory_unlock(4712)")),
    lock("a lock of two levels, one of them released", UNLOCK,
         make=("SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_lock(4711)", UNLOCK)),
    lock("DO with pg_advisory_lock", UNLOCK,
         make=("DO $$ BEGIN PERFORM pg_advisory_lock(4711); END $$",)),
    lock("a FunctionCall of pg_advisory_lock", UNLOCK, protocols=("simple",),
         make=(Call(LOCK_OID, ("4711",)),)),
    # A setting beside a lock, which keeps the server with its client.
    *[
        setting(name, *of, family="locks", end=(*ends, UNLOCK), ended_by=DISCARD_ALL,
                make=(*make, "DO $$ BEGIN PERFORM pg_advisory_lock(4711); END $$"), **more)
        for name, make, of, ends, more in (
            ("SET, DO with pg_advisory_lock", ("SET work_mem = '77MB'",),
             ("work_mem", "77MB", "4MB"), ("RESET work_mem",), {}),
            ("SET ROLE, DO with pg_advisory_lock", ("SET ROLE tenant_one",),
             ("role", "tenant_one", "none"), ("RESET ROLE",), {}),
            ("work_mem of the start, DO with pg_advisory_lock", (), ("work_mem", "5MB", "4MB"), (),
             {"asked": "5MB", "start": (("work_mem", "5MB"),)}),
        )
    ],
    # What never stays.
    lock("SELECT pg_advisory_xact_lock(4711)", (), made="0", typical=True),
    lock("SELECT pg_try_advisory_xact_lock_shared(47, 11)", (), made="0"),
    lock("a lock that is released at once", (), made="0",
         make=("SELECT pg_advisory_lock(4711)", UNLOCK)),
    # Neither words nor tags tell this.
    lock("SELECT of a function that locks", UNLOCK, make=("SELECT bolt()",)),
]


# --- cursors, prepared statements, channels, libraries ----------------------------------------

CURSOR_LOOK = "SELECT count(*) FROM pg_cursors WHERE name = 'shelf'"


def cursor(sql, end="CLOSE shelf", made="1", **more):
    """A cursor that outlives its transaction."""
    return Kind(
        family="cursors", name=more.pop("name", sql), make=more.pop("make", (sql,)),
        look=CURSOR_LOOK, made=made, none="0", end=(end,) if end else (),
        ended_by=("CLOSE ALL", "DISCARD ALL"), **more,
    )


CURSORS = [
    cursor("DECLARE shelf CURSOR WITH HOLD FOR SELECT 77", typical=True),
    cursor('declare "shelf" binary scroll cursor /* */ with\nhold for select 77'),
    cursor("two cursors, one of them closed",
           make=("DECLARE shelf CURSOR WITH HOLD FOR SELECT 77",
                 "DECLARE board CURSOR WITH HOLD FOR SELECT 77", "CLOSE board")),
    # What never stays.
    cursor("DECLARE shelf CURSOR FOR SELECT 77", end=None, made="0", in_block=True),
    cursor("DECLARE WITH HOLD, CLOSE", end=None, made="0",
           make=("DECLARE shelf CURSOR WITH HOLD FOR SELECT 77", "CLOSE shelf")),
]


def prepared(name, make, made="77", look="EXECUTE recipe", **more):
    """A statement prepared by SQL."""
    return Kind(
        family="prepared", name=name, make=make, look=look, made=made, none="ERROR 26000",
        end=more.pop("end", ("DEALLOCATE recipe",)),
        ended_by=("DEALLOCATE ALL", "DEALLOCATE PREPARE ALL", "DISCARD ALL"), kept=True, **more,
    )


PREPARED = [
    prepared("PREPARE", ("PREPARE recipe AS SELECT 77",), typical=True),
    prepared("PREPARE with types", ("PREPARE recipe (int, text) AS SELECT $1 + 7 || $2",),
             look="EXECUTE recipe (7 * 10, '')", end=("DEALLOCATE PREPARE recipe",)),
    prepared("PREPARE with an inferred type", ("PREPARE recipe AS SELECT $1 + 7",),
             look="EXECUTE recipe(70)"),
    prepared("PREPARE of a quoted name", ('PREPARE "Re""zept ä" AS SELECT 77',),
             look='EXECUTE "Re""zept ä"', end=('DEALLOCATE "Re""zept ä"',)),
    prepared("PREPARE of VALUES", ("/* x */ prepare Recipe as values (77)",),
             look="execute RECIPE"),
    prepared("EXPLAIN EXECUTE", ("PREPARE recipe AS SELECT 77",), made="Result",
             look="EXPLAIN (COSTS off) EXECUTE recipe"),
    prepared("two statements, one of them deallocated",
             ("PREPARE recipe AS SELECT 77", "PREPARE other AS SELECT 78", "DEALLOCATE other")),
    prepared("DEALLOCATE and PREPARE again",
             ("PREPARE recipe AS SELECT 78", "DEALLOCATE recipe", "PREPARE recipe AS SELECT 77")),
    prepared("DO with PREPARE", ("DO $$BEGIN EXECUTE 'PREPARE recipe AS SELECT 77'; END$$",)),
    prepared("PREPARE, DEALLOCATE", ("PREPARE recipe AS SELECT 77", "DEALLOCATE recipe"),
             made="ERROR 26000", end=()),
]


def channel(sql, made="heard", end=("UNLISTEN news",), **more):
    """A channel that the client listens to."""
    return Kind(
        family="channels", name=more.pop("name", sql), make=more.pop("make", (sql,)),
        look=more.pop("look", Heard("news")), made=made, none="silent", end=end,
        ended_by=("UNLISTEN *", "DISCARD ALL"), **more,
    )


CHANNELS = [
    channel("LISTEN news", typical=True),
    channel('LISTEN "News ä"', look=Heard("News ä"), end=('UNLISTEN "News ä"',)),
    channel("two channels, one of them left", make=("LISTEN news", "LISTEN sports", "UNLISTEN sports")),
    channel("DO with LISTEN", make=("DO $$ BEGIN LISTEN news; END $$",)),
    channel("LISTEN, UNLISTEN", made="silent", make=("LISTEN news", "UNLISTEN news"), end=()),
]

LIBRARIES = [
    Kind(
        family="library", name="LOAD 'auto_explain'", make=("LOAD 'auto_explain'",),
        look="SELECT count(*) > 0 FROM pg_settings WHERE name LIKE 'auto_explain.%'",
        made="t", none="f", kept=True, user=SUPERUSER, typical=True,
    ),
    Kind(
        family="library", name="DO with LOAD", make=("DO $$BEGIN LOAD 'auto_explain'; END$$",),
        look="SELECT count(*) > 0 FROM pg_settings WHERE name LIKE 'auto_explain.%'",
        made="t", none="f", kept=True, user=SUPERUSER,
    ),
]

KINDS = [
    *SETTINGS, *WAYS, *ROLES, *TEMPORARY, *LOCKS, *CURSORS, *PREPARED, *CHANNELS, *LIBRARIES,
]


# --- what the kinds need in the database ------------------------------------------------------

OBJECTS = """
CREATE ROLE tenant_one;
CREATE ROLE tenant_two;
CREATE ROLE "Ten""ant Zwölf";
GRANT tenant_one, tenant_two, "Ten""ant Zwölf" TO app;
GRANT tenant_two TO tenant_one;
CREATE TABLE doors (number int);
CREATE TABLE doors_with_trigger (number int);
CREATE FUNCTION enter(name text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN PERFORM set_config('app.tenant', name, false); END $$;
CREATE FUNCTION enter_by_trigger() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM set_config('app.tenant', 'red', false); RETURN NULL; END $$;
CREATE TRIGGER enters BEFORE INSERT ON doors_with_trigger
	FOR EACH ROW EXECUTE FUNCTION enter_by_trigger();
CREATE PROCEDURE enter_by_procedure(name text) LANGUAGE plpgsql AS
	$$ BEGIN PERFORM set_config('app.tenant', name, false); END $$;
CREATE FUNCTION visit(name text) RETURNS text LANGUAGE plpgsql
	SET work_mem = '77MB' SET app.tenant = 'visited' AS
	$$ BEGIN RETURN current_setting('work_mem') || name; END $$;
CREATE FUNCTION furnish() RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN CREATE TEMP TABLE desk (a int); END $$;
CREATE FUNCTION bolt() RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_lock(4711); END $$;
GRANT INSERT ON doors, doors_with_trigger TO app;
"""

DROP_OBJECTS = """
DROP TABLE IF EXISTS doors, doors_with_trigger;
DROP FUNCTION IF EXISTS enter, enter_by_trigger, visit, furnish, bolt;
DROP PROCEDURE IF EXISTS enter_by_procedure;
DROP ROLE IF EXISTS tenant_one, tenant_two, "Ten""ant Zwölf";
"""
