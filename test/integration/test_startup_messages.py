# SPDX-License-Identifier: ISC
"""The same startup messages to PostgreSQL and to the pooler: which are accepted, with what effect."""

import struct

import pytest

from support import wire
from support.clients.raw import RawClient, ServerError
from support.servers.cluster import is_newer

TOLD = ("application_name", "DateStyle", "TimeZone", "client_encoding", "IntervalStyle")

# Texts of `options`, and the settings to compare afterwards.
OPTIONS = [
    ("", "work_mem"),
    ("  \t ", "work_mem"),
    ("-c work_mem=1MB", "work_mem"),
    ("-cwork_mem=1MB", "work_mem"),
    ("--work_mem=1MB", "work_mem"),
    ("--work-mem=1MB", "work_mem"),
    ("-c wORK-mem=1MB  ", "work_mem"),
    ("\t-c\twork_mem=1MB\n-c\vgeqo=off\f", "work_mem geqo"),
    ("-c work_mem=1MB -- ", "work_mem"),
    ("--", "work_mem"),
    ("-c work_mem=", "work_mem"),
    ("-c work_mem=1MB -c WORK_MEM=2MB", "work_mem"),
    ("-c my.x=a\\ b", "my.x"),
    ("-c my.x=a\\\\b", "my.x"),
    ("-c my.x=a\\", "my.x"),
    ("-c my.x=a=b", "my.x"),
    ("-c my\\.x=a", "my.x"),
    ("-c my.x=", "my.x"),
    ("-c my.x-y=1", "my.x_y"),
    ("-c a.b.c=1", "a.b.c"),
    ("-c MY.X=1 -cmy.y=it's", "my.x my.y"),
    ("-c my..x=1", ""),
    ("-c my.1x=1", ""),
    ("-d 0", ""),
    ("-d 3", ""),
    ("-s", ""),
    ("-B 64", ""),
    ("-F", ""),
    ("-h x", ""),
    ("-i", ""),
    ("-k x", ""),
    ("-l", ""),
    ("-N 10", ""),
    ("-O", ""),
    ("-p 1", ""),
    ("-t pa", ""),
    ("-tpl", ""),
    ("-te", ""),
    ("-fn", "enable_nestloop"),
    ("-f n", "enable_nestloop"),
    ("-fs -fi -fb -fm -fh -ft -fo", "enable_seqscan enable_bitmapscan enable_indexonlyscan"),
    ("-S 1234", "work_mem"),
    ("-S1234", "work_mem"),
    ("-e", "datestyle"),
    ("-ec geqo=off", "datestyle geqo"),
    ("-eS 777", "datestyle work_mem"),
    ("-e -S 999 -c geqo=off -fn --my.x=1", "datestyle work_mem geqo enable_nestloop my.x"),
    ("-n -j -E -T -b", "work_mem"),
    ("-r x -v 3 -C work_mem -D x -c geqo=off", "work_mem geqo"),
    ("-c role=none", "role"),
    ("-c role=app", "role"),
    ("-c role=bob", ""),
    ("-c session_authorization=app", "session_authorization"),
    ("-c search_path=", "search_path"),
    ("-c search_path=''", "search_path"),
    ('-c search_path=""', "search_path"),
    ("-c search_path=a,b", "search_path"),
    ("-c search_path=a,", ""),
    ("-c search_path=a\\ b", ""),
    ("-c search_path='a',b", "search_path"),
    ('-c search_path="A\\ b",\\ c', "search_path"),
    ("-c search_path=$user", "search_path"),
    ("-c search_path=" + "x" * 100, "search_path"),
    ("-c temp_tablespaces=", "temp_tablespaces"),
    ("-c shared_buffers=1MB", ""),
    ("-c server_version=9.0", ""),
    ("-c session_replication_role=replica", ""),
]

# Parameters beside it.
PARAMETERS = [
    *[("DateStyle", value) for value in ("German", "iso,dmy", "European", "", "iso, german")],
    *[("TimeZone", value) for value in ("utc", "europe/berlin", "+3", "-3.5", "<X>-3", "EST")],
    *[("TimeZone", value) for value in ("INTERVAL '-08:00' HOUR TO MINUTE", "local", "abc", "")],
    *[("work_mem", value) for value in ("1024", " 1024 kB ", "1024KB", "1.5MB", "0x400", "1e3")],
    *[("work_mem", value) for value in ("1", "abc", "", "1TB")],
    *[("statement_timeout", value) for value in ("1min", "1.5s", "-1", "99999999999")],
    *[("geqo", value) for value in ("t", "OFF", "of", "o", "2", "")],
    *[("seq_page_cost", value) for value in ("1.5", ".5e1", "NaN")],
    *[("client_encoding", value) for value in ("utf-8", "latin1", "sql_ascii", "'utf-8'", "xx", "")],
    *[("application_name", value) for value in ("", "x" * 100, "a\tb\nc\x7f", "naïve")],
    *[("application_name", value) for value in ("x" * 62 + "é", b"a\xe4b", b"\xff\xfe")],
    ("IntervalStyle", "POSTGRES_verbose"),
    ("standard_conforming_strings", "off"),
    ("client_min_messages", "WARNING"),
    ("extra_float_digits", "99"),
    ("default_transaction_isolation", "Serializable"),
    ("transaction_read_only", "on"),
    ("server_encoding", "UTF8"),
    ("in_hot_standby", "on"),
    ("default_text_search_config", "nothere"),
    ("default_tablespace", "nothere"),
    ("sort_mem", "1MB"),
    ("vacuum_mem", "2MB"),
    ("my.X", "1"),
    ("plpgsql.variable_conflict", "use_column"),
    ("_pq_.x", "1"),
]

# Several, where their order counts.
SEVERAL = [
    [("work_mem", "1MB"), ("work_mem", "2MB")],
    [("work_mem", "1MB"), ("options", "-c work_mem=2MB")],
    [("options", "-c work_mem=2MB"), ("work_mem", "1MB")],
    [("options", "-c work_mem=2MB"), ("options", "-c geqo=off")],
    [("work_mem", "2MB"), ("sort_mem", "1MB")],
    [("timezone", "UTC"), ("TIMEZONE", "Asia/Tokyo")],
    [("client_encoding", "latin1"), ("application_name", b"a\xe4b")],
    [("client_encoding", "sql_ascii"), ("my.x", "ä")],
]

BYTES = "SELECT encode(convert_to(current_setting($${}$$, true), 'UTF8'), 'escape')"


def startup(pairs, user="app"):
    """A startup message of any bytes, with names as often as given."""
    body = struct.pack("!I", wire.PROTOCOL_3_0)
    for text in [each for pair in [("user", user), ("database", "main"), *pairs] for each in pair]:
        body += (text if isinstance(text, bytes) else text.encode()) + b"\0"
    return struct.pack("!I", len(body) + 5) + body + b"\0"


def outcome(client, pairs, names, meanwhile=lambda: None):
    """How a login ends: the code of its error, or what is reported and set afterwards."""
    with client:
        client.send(startup(pairs))
        try:
            client.finish_login("app")
        except ServerError as error:
            return error.severity, error.sqlstate
        meanwhile()
        received = {name: client.parameters.get(name) for name in TOLD}
        return received, [client.value(BYTES.format(name)) for name in names]


@pytest.fixture
def compare(new_pooler, cluster):
    """Send the same to both: compare(pairs, names of settings to compare)."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    plain = pooler.client()

    def compared(pairs, names):
        direct = outcome(RawClient((cluster.host, cluster.port)), pairs, names)
        assert outcome(pooler.raw(), pairs, names, lambda: plain.query("SELECT 1")) == direct
        return direct

    return compared


def test_options_are_read_as_postgres_reads_them(compare):
    outcomes = [compare([("options", text)], names.split()) for text, names in OPTIONS]
    assert {code for code, _ in outcomes if isinstance(code, str)} == {"FATAL"}
    assert sum(isinstance(received, dict) for received, _ in outcomes) > 40


def test_parameters_mean_what_they_mean_to_postgres(compare):
    for name, value in PARAMETERS:
        compare([(name, value)], [] if name == "_pq_.x" else [name])


def test_of_repeated_parameters_the_same_one_counts(compare):
    for pairs in SEVERAL:
        compare(pairs, ["work_mem", "geqo", "my.x"])


@pytest.mark.parametrize("name", ["x" * 61 + "é", "é" * 40, b"x" * 61 + b"\xe4\xff"])
def test_a_long_name_is_cut_before_or_behind_its_bytes(pooler, cluster, name):
    """Where bytes are written as octal numbers PostgreSQL lets that make a name longer."""
    pairs = [("application_name", name)]
    received, (direct,) = outcome(RawClient((cluster.host, cluster.port)), pairs, ["application_name"])
    ours, (shown,) = outcome(pooler.raw(), pairs, ["application_name"])
    assert ours["application_name"] == shown.replace("\\\\", "\\")
    assert direct.startswith(shown)
    assert is_newer() or received == ours


# Both refuse these, the pooler with PgBouncer's text where it has one.
MALFORMED = [
    "-c work_mem=1MB -c",
    "-c work_mem",
    "--work_mem",
    "-c =1",
    "-c work_mem =1MB",
    "-fx",
    "-tx",
    "-f",
    "-o x",
    "-Z",
    "work_mem=1MB",
    "-",
    "-- -c work_mem=1MB",
    "-c work_mem=1MB main",
    "--single",
    "-é",
]


def test_malformed_options_are_refused(pooler, cluster):
    for text in MALFORMED:
        with pytest.raises(ServerError) as received, RawClient((cluster.host, cluster.port)) as direct:
            direct.login("app", "main", options=text)
        assert received.value.severity == "FATAL"
        error = pooler.refused(options=text)
        assert error.sqlstate == "08P01"
        assert error.text.startswith("unsupported options startup parameter: only '-c config=val'")


# PostgreSQL accepts these and the pooler does not: they concern the start of a backend.
REFUSED = [
    ([("options", "-c seed=0.5")], "08P01"),
    ([("options", "-W 0")], "55P02"),
    ([("ignore_system_indexes", "on")], "55P02"),
    ([("my.x", b"a\xe4b")], "22021"),
    ([("search_path", b"a\xe4")], "22021"),
    ([("my.é", "1")], "08P01"),
    ([("x" * 64 + ".y", "1")], "08P01"),
    ([("temp_tablespaces", "nothere")], "42704"),
]


@pytest.mark.parametrize("pairs, code", REFUSED, ids=str)
def test_some_options_of_postgres_are_refused(pooler, cluster, pairs, code):
    accepted = outcome(RawClient((cluster.host, cluster.port)), pairs, [])
    assert isinstance(accepted[0], dict)
    assert outcome(pooler.raw(), pairs, []) == ("FATAL", code)


def test_debug_levels_are_for_superusers(new_pooler, cluster):
    pooler = new_pooler({"default_pool_size": 1}, databases={"main": {"user": "harness"}})
    for level, expected in (("0", "notice none off"), ("2", "debug2 all off"), ("9", "debug5 all on")):
        client = pooler.client(options=f"-d {level}")
        assert client.value("SHOW log_min_messages") == expected.split()[0]
        assert client.value("SHOW log_statement") == expected.split()[1]
        assert client.value("SHOW debug_print_rewritten") == expected.split()[2]
        client.leave()


def test_with_strict_options_count_in_their_order(new_pooler):
    pooler = new_pooler({"startup_parameters": "strict"})
    client = pooler.client(TimeZone="UTC", options="-c TimeZone=Asia/Tokyo")
    assert client.parameters["TimeZone"] == "Asia/Tokyo"
    assert pooler.refused(options="--time-zone=UTC").sqlstate == "08P01"


def test_a_backslash_byte_within_a_character_is_no_escape(new_pooler):
    """In SJIS the second byte of a character may be that of a backslash: it does not hide the end
    of the value."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    plain = pooler.client()
    value = b"\x83\x5c\\';SELECT 1/0;$p$ppp$'"
    with pooler.raw() as client:
        client.send(startup([("client_encoding", "sjis"), ("my.x", value)]))
        client.finish_login("app")
        for _ in range(2):
            plain.query("SELECT 1")
            asked = "SELECT convert_to(current_setting('my.x'), 'UTF8')"
            assert bytes.fromhex(client.value(asked)[2:]).decode() == value.decode("shift-jis")
