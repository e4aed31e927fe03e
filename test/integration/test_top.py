# SPDX-License-Identifier: ISC
"""pgusher top: a real pgusher, a real PgBouncer and a fake console, looked at in tmux."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

from support import wire
from support.process import HOST, has_ended, resume_process, stop_process, wait_until
from support.servers.fake_console import ANSWERS, FakeConsole, table
from support.servers.fake_server import FakeServer
from support.servers.pooler import binary
from support.terminal import PROMPT, TMUX, Terminal, program

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")

pytestmark = [
    pytest.mark.skipif(not program(), reason="pgusher-top was not built"),
    pytest.mark.skipif(not TMUX, reason="no tmux"),
]


@pytest.fixture
def new_terminal():
    """Make a terminal: new_terminal(width=, height=, term=, locale=, VARIABLE=)."""
    with contextlib.ExitStack() as stack:

        def make(**options):
            terminal = Terminal(**options)
            stack.callback(terminal.close)
            return terminal

        yield make


@pytest.fixture
def new_console():
    """Make a fake console: new_console(POOLS=..., CLIENTS=...)."""
    with contextlib.ExitStack() as stack:

        def make(**answers):
            console = FakeConsole(**answers)
            stack.callback(console.stop)
            return console

        yield make


def at(place, user="admin"):
    """The options that lead to a pooler or a fake console."""
    return ["-h", HOST, "-p", place.port, "-U", user]


def run_once(*arguments, timeout=30, **environment):
    """Run pgusher-top without a terminal."""
    variables = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment}
    return subprocess.run(
        [program(), *map(str, arguments)], env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=timeout, check=False,
    )


# --- overload --------------------------------------------------------------------------------------

CLIENTS, SIZE = 40, 3


def overload(pooler):
    """A transaction left open, and clients that wait for the other servers, which sleep."""
    holder = pooler.connect(application_name="nightly-batch", autocommit=False)
    holder.execute("SELECT 1")
    for number in range(CLIENTS):
        client = pooler.client(application_name=f"web-{number}")
        client.send(wire.query("SELECT pg_sleep(2)"))


@pytest.fixture(params=["pgusher", "pgbouncer"])
def overloaded(request, new_pooler):
    """A pooler, ours or PgBouncer, whose pool is full."""
    settings = {"pool_mode": "transaction", "default_pool_size": SIZE, "max_client_conn": 90}
    if request.param == "pgusher":
        pooler = new_pooler(settings)
    elif not PGBOUNCER:
        pytest.skip("no PgBouncer installed")
    else:
        pooler = new_pooler(settings, start=False)
        pooler.spawn(program=PGBOUNCER)
        pooler.wait_up()
    overload(pooler)
    wait_until(lambda: pooler.pool()["sv_active"] == SIZE and pooler.pool()["cl_waiting"] > CLIENTS // 2)
    yield pooler
    if request.param == "pgbouncer":
        pooler.process.kill()
        pooler.process.wait()


def test_overload_is_named_with_its_cause(overloaded, new_terminal):
    terminal = new_terminal(width=110).start(*at(overloaded))
    screen = terminal.wait("idle in its transaction")
    # The cause, the client and the setting to change.
    assert re.search(r"main/app: \d+ clients wait, the longest \d+\.\d s: ", screen)
    assert f"all {SIZE} servers are in use (pool_size {SIZE})" in screen
    assert '"nightly-batch" (127.0.0.1)' in screen and "[idle_transaction_timeout]" in screen
    assert re.search(r"clients \d+/90  waiting \d\d  longest", screen)
    # The holder of the open transaction comes first, queries with their time at the server behind it.
    terminal.press("s")
    lines = terminal.wait("*SINCE").splitlines()
    title = next(number for number, line in enumerate(lines) if "*SINCE" in line)
    wait_until(lambda: "nightly-batch" in terminal.lines()[title + 1])
    assert "idle in transaction" in terminal.lines()[title + 1]
    assert sum("query runs" in line for line in lines) >= SIZE - 2
    terminal.press("w")
    terminal.wait("[w waits]")
    wait_until(lambda: terminal.screen().split("[w waits]")[1].count("waiting") > 5)
    assert "nightly-batch" not in terminal.screen().split("[w waits]")[1]
    terminal.press("q")
    assert terminal.status() == "0"


def test_one_is_not_counted_as_many(new_console, new_terminal):
    columns, _ = ANSWERS["SERVERS"]
    console = new_console(
        SERVERS=(columns, [["0x1", "0x2", "main", "app", "active"]]),
        DATABASES=(["name", "pool_size"], [["main", "1"]]),
    )
    screen = new_terminal(width=200).start(*at(console), "-i", "0.2").wait("tps 0")
    assert "main/app: 1 client waits, the longest 3.5 s: the only server is in use (pool_size 1)" in screen
    # No query has ended between two answers: there is no time of one.
    assert "1 row, every" in screen and "query 0" not in screen
    console.answers["DATABASES"] = (["name", "pool_size"], [["main", "5"]])
    new_terminal(width=200).start(*at(console)).wait("1 of 5 servers (pool_size) is in use")


def test_snapshot_has_all_views(overloaded):
    done = run_once("--once", "-i", "0.2", *at(overloaded), COLUMNS="120")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert any(line.startswith("pools (1)") for line in lines)
    assert any(line.startswith(f"servers ({SIZE})") for line in lines)
    assert any(re.match(r"waits \(\d\d\)", line) for line in lines)
    assert any("nightly-batch" in line and "idle in transaction" in line for line in lines)
    assert max(map(len, lines)) <= 120


def test_pgusher_top_executes_it(pooler):
    done = subprocess.run(
        [binary(), "top", "--once", "-i", "0.1", *map(str, at(pooler))],
        capture_output=True, text=True, timeout=30, check=False,
    )
    assert done.returncode == 0 and "(pgusher " in done.stdout
    # Unix socket, and the names of psql's command line.
    done = run_once(
        "--once", "-i", "0.1", f"host={pooler.folder} port={pooler.port} user=stats dbname=pgbouncer"
    )
    assert done.returncode == 0, done.stderr
    assert f"{pooler.folder}:{pooler.port}" in done.stdout


def test_pgusher_top_says_that_the_program_is_missing(folder):
    alone = shutil.copy(binary(), folder)
    done = subprocess.run([alone, "top"], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 127:
        pytest.skip("pgusher-top is installed")
    assert "pgusher-top is not installed" in done.stderr


# --- terminals -------------------------------------------------------------------------------------


def test_every_size_is_filled_and_not_exceeded(new_console, new_terminal):
    rows = [[f"database_{number}", "app", *ANSWERS["POOLS"][1][0][2:]] for number in range(60)]
    console = new_console(POOLS=(ANSWERS["POOLS"][0], rows))
    terminal = new_terminal().start(*at(console))
    terminal.wait("database_1 ")
    for width, height in [(20, 10), (20, 5), (300, 60), (40, 3), (1, 1), (80, 24), (20, 24)]:
        terminal.resize(width, height)
        size = f"{width}x{height}"
        if width >= 20 and height > 3:
            wait_until(
                lambda: "DATA" in terminal.screen() and "data" in terminal.screen(), what=size
            )
        assert len(terminal.lines()) <= height
        assert all(len(line) <= width for line in terminal.lines())
        assert terminal.processes()
    terminal.resize(80, 24)
    terminal.wait("q quit")
    terminal.press("q")
    assert terminal.status() == "0"


@pytest.mark.parametrize("term", ["vt100", "xterm-256color", "screen"])
def test_terminals_with_and_without_colours(new_console, new_terminal, term):
    console = new_console()
    terminal = new_terminal(term=term).start(*at(console))
    terminal.wait("1 client waits, the longest 3.5 s")
    coloured = "\x1b[33m" in (shown := terminal.screen("-e")) or "\x1b[1m\x1b[33m" in shown
    assert coloured == (term != "vt100")


@pytest.mark.parametrize("options, environment", [(["--no-colour"], {}), ([], {"NO_COLOR": "1"})])
def test_colours_can_be_off(new_console, new_terminal, options, environment):
    terminal = new_terminal(**environment).start(*at(new_console()), *options)
    terminal.wait("1 client waits, the longest 3.5 s")
    assert "\x1b[33m" not in terminal.screen("-e")


def test_terminal_that_cannot_move_its_cursor_gets_snapshots(new_console, new_terminal):
    terminal = new_terminal(term="dumb", height=80).start(*at(new_console()), "-i", "0.2")
    wait_until(lambda: terminal.screen().count("PgBouncer 9.9.9") > 1, 15, "two snapshots", 0.1)
    terminal.press("C-c")
    terminal.wait_prompt()


def test_without_a_terminal_it_says_so(new_console):
    done = run_once(*at(new_console()), TERM="xterm")
    assert done.returncode == 1 and "--once" in done.stderr
    # Unknown ones too.
    terminal = Terminal(term="no-such-terminal")
    try:
        terminal.start(*at(new_console()))
        assert terminal.status() == "1" and "TERM" in terminal.said()
    finally:
        terminal.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signal_gives_the_terminal_back(new_console, new_terminal, number):
    terminal = new_terminal()
    terminal.type(f"cd {terminal.folder}; stty -g >before")
    terminal.start(*at(new_console()))
    terminal.wait("q quit")
    (process,) = terminal.processes()
    os.kill(process, number)
    terminal.wait_prompt()
    terminal.type("stty -g >after; cmp before after && echo the-same")
    assert "q quit" not in terminal.wait("the-same\n")


# LeakSanitizer may wait for ever while a terminal hangs up: see Terminal.close().
WITHOUT_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}


def test_closed_terminal_ends_it(new_console, new_terminal):
    terminal = new_terminal(**WITHOUT_LEAKS).start(*at(new_console()))
    terminal.wait("q quit")
    (process,) = terminal.processes()
    terminal.hang_up()
    wait_until(lambda: has_ended(process), what="the end of pgusher-top")


def test_closed_terminal_ends_it_without_a_signal(new_console, new_terminal):
    terminal = new_terminal(**WITHOUT_LEAKS)
    terminal.type("trap '' HUP")
    terminal.start(*at(new_console()))
    terminal.wait("q quit")
    (process,) = terminal.processes()
    terminal.hang_up()
    wait_until(lambda: has_ended(process), what="the end of pgusher-top")


def test_stopped_and_continued(new_console, new_terminal):
    terminal = new_terminal().start(*at(new_console()))
    terminal.wait("q quit")
    terminal.press("C-z")
    terminal.wait_prompt()
    terminal.resize(60, 15)
    terminal.type("fg")
    terminal.wait("q quit")
    wait_until(lambda: len(terminal.lines()) <= 15 and "DATABASE" in terminal.screen())
    terminal.press("q")
    assert terminal.status() == "0"


# --- names -----------------------------------------------------------------------------------------

HOSTILE = [
    b"\x1b]0;owned\x07\x1b[31mred", b"\x9b31m\xff\xfe", "\u202egnp.exe\u200b".encode(), b"new\nline\ttab",
    "日本語のアプリ".encode(), ("e" + "\u0301" * 50).encode(), b"a" * 5000, b"%s%n%x", b"",
]


def hostile_clients():
    """SHOW CLIENTS with each of the names."""
    columns, rows = ANSWERS["CLIENTS"]
    return columns, [[*rows[0][:7], name] for name in HOSTILE]


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_no_byte_of_a_name_controls_the_terminal(new_console, new_terminal, locale):
    console = new_console(CLIENTS=hostile_clients(), VERSION=(["version"], [[HOSTILE[0]]]))
    terminal = new_terminal(locale=locale).start(*at(console), "--no-colour")
    terminal.press("c")
    screen = terminal.wait(r"\x1b]0;owned\x07\x1b[31mred")
    assert r"\xff\xfe" in screen and r"\u202egnp.exe\u200b" in screen and r"new\x0aline\x09tab" in screen
    assert "%s%n%x" in screen and "a~" in screen
    assert ("日本語のアプリ" in screen) == (locale == "C.UTF-8")
    assert ("???????" in screen) == (locale == "C")
    assert "\x1b[31m" not in terminal.screen("-e")
    # Each client has one line, and the next column begins at the same place.
    rows = [line for line in screen.splitlines() if "10.0.0.1:1234" in line]
    assert len(rows) == len(HOSTILE)


def test_snapshot_has_no_control_characters(new_console):
    console = new_console(CLIENTS=hostile_clients())
    done = run_once("--once", "-i", "0.1", *at(console), COLUMNS="1000")
    assert done.returncode == 0
    assert not [sign for sign in done.stdout if ord(sign) < 32 and sign != "\n"]


# --- consoles --------------------------------------------------------------------------------------


def test_only_show_is_sent(new_console, new_terminal):
    console = new_console()
    terminal = new_terminal().start(*at(console), "-i", "0.1")
    terminal.wait("every 0.1 s")
    for key, topic in zip("swcalp", ["PINS", "SERVERS", "CLIENTS", "ADVICE", "SLOW", "CONFIG"]):
        terminal.press(key)
        wait_until(lambda: console.count(topic) > 0)
    terminal.press("h", "r", "Space")
    terminal.wait("PAUSED")
    assert all(sql.startswith("SHOW ") for sql in console.asked)
    # Those that this console does not know are asked for once.
    assert console.count("ADVICE") == 1 and console.count("SLOW") == 1


def test_advice_and_slow_queries_of_a_console_that_has_them(new_console, new_terminal):
    text = "The pool main/app has been full for 34 s while PostgreSQL is idle: " + "word " * 30 + "end."
    console = new_console(
        ADVICE=(
            ["since_seconds", "severity", "code", "database", "user", "setting", "advice", "new"],
            [["34", "info", "x", "", "", "", "Nothing much.", ""],
             ["34", "warning", "pool_full", "main", "app", "pool_size", text, "?"]],
        ),
        SLOW=(
            ["id", "at", "client", "client_port", "cause", "total_us", "queue_us", "error", "text"],
            [["7", "2026-01-01 12:00:00 UTC", "0x550000000130", "36408", "queue", "6059935", "4600", None,
              "SELECT\x1b[31m 1 FROM a_table_with_a_long_name"]],
        ),
    )
    terminal = new_terminal(width=80).start(*at(console))
    # The most severe advice stands above every view.
    terminal.wait("has been full for 34 s")
    terminal.press("a")
    screen = terminal.wait("warning pool_full  main/app  since 34.0 s  change: pool_size")
    assert "end." in screen.split("pool_full  main")[1]
    terminal.press("l")
    screen = terminal.wait("total_us")
    assert r"6.1 s   4.6 ms SELECT\x1b[31m 1 FROM a_table_with_a_long_name" in screen
    assert "36408" not in screen


def test_the_first_line_follows_the_advice_on_the_pool(new_console, new_terminal):
    advice = [
        ["60", "critical", "idle_transaction", "main", "app", "idle_transaction_timeout", "Has been open."],
        ["34", "warning", "pool_full", "other", "app", "pool_mode", "Of another pool."],
        ["34", "warning", "pool_full", "main", "app", "pool_size", "The pool is full."],
    ]
    console = new_console(
        POOLS=(ANSWERS["POOLS"][0], [["main", "app", "5", "9", "5", "3", "500000", "transaction"]]),
        SERVERS=(
            ["ptr", "link", "database", "user", "state", "request_time"],
            [["0x1", "0x2", "main", "app", "active", "2026-01-01 00:00:00 UTC"]],
        ),
        CLIENTS=(
            ["ptr", "link", "database", "user", "state", "addr", "application_name", "request_time", "wait", "wait_us"],
            [["0x2", "0x1", "main", "app", "idle_transaction", "10.0.0.1", "batch", "2026-01-01 00:00:00 UTC", "0", "0"],
             ["0x3", "", "main", "app", "waiting", "10.0.0.1", "web", "2026-01-01 00:00:30 UTC", "3", "500000"]],
        ),
        ADVICE=(["since_seconds", "severity", "code", "database", "user", "setting", "advice"], advice),
    )
    terminal = new_terminal(width=400).start(*at(console))
    screen = terminal.wait("[pool_size]; ")
    assert re.search(r"all 5 servers are in use \(pool_size 5\): .* \[pool_size\]; \"batch\"", screen)
    # The transaction is in the first line: the other one is the advice on the pool.
    assert "main/app: The pool is full. [pool_size]" in screen
    assert "Has been open" not in screen


def test_columns_are_found_by_name(new_console, new_terminal):
    columns, rows = ANSWERS["POOLS"]
    console = new_console(
        POOLS=(["new", *reversed(columns)], [["x", *reversed(rows[0])]]),
        DATABASES=(["something"], [["else"]]), STATS=([], []), LISTS=(["list"], [[None]]),
        CLIENTS=(["ptr"], [[None]]), SERVERS=(["state", "link"], [["active", "0x9"]]),
        CONFIG=(["key", "value"], [["max_client_conn", None]]), VERSION=(["version"], []),
    )
    terminal = new_terminal().start(*at(console))
    screen = terminal.wait("main")
    assert "3.5 s" in screen and "transaction" in screen
    terminal.press("s")
    terminal.wait("active")
    terminal.press("c", "w")
    terminal.wait("no client waits")


def test_many_clients_are_read_less_often(new_console, new_terminal):
    columns, rows = ANSWERS["CLIENTS"]
    many = table(columns, [[f"0x{number:x}", *rows[0][1:]] for number in range(20000)])
    console = new_console(CLIENTS=many)
    terminal = new_terminal(width=120).start(*at(console), "-i", "0.2")
    terminal.wait("[p pools]")
    terminal.press("c")
    terminal.wait("20000 rows: every 10 s")
    before, pools = console.count("CLIENTS"), console.count("POOLS")
    wait_until(lambda: console.count("POOLS") > pools + 5)
    assert console.count("CLIENTS") == before
    terminal.press("End")
    terminal.wait("batch")
    terminal.press("q")
    assert terminal.status() == "0"


def test_endless_rows_do_not_take_the_keys_away(new_console, new_terminal):
    columns, rows = ANSWERS["CLIENTS"]

    def endless(connection):
        connection.send(wire.row_description(*columns))
        while True:
            connection.send(wire.data_row(*rows[0]) * 500)

    terminal = new_terminal().start(*at(new_console(CLIENTS=endless)))
    terminal.wait("[p pools]")
    terminal.press("c", "h")
    terminal.wait("Nothing here changes the pooler")
    terminal.press("q")
    assert terminal.status() == "0"


def test_many_pools_without_a_database_do_not_take_the_keys_away(new_console, new_terminal):
    pools = table(["database", "user"], [[f"pool{number}", "app"] for number in range(50000)])
    databases = table(["name", "pool_size"], [[f"other{number}", "5"] for number in range(50000)])
    terminal = new_terminal().start(*at(new_console(POOLS=pools, DATABASES=databases)))
    terminal.wait("50000 rows", 30)
    terminal.press("h")
    terminal.wait("Nothing here changes the pooler", 10)
    terminal.press("q")
    assert terminal.status() == "0"


def test_errors_without_an_end_are_the_end(new_console, new_terminal):
    def endless(connection):
        while True:
            connection.send(wire.error("XX000", "x" * 1000) * 500)

    terminal = new_terminal().start(*at(new_console(POOLS=endless)))
    terminal.wait("the console does not end its answer")


def test_answer_that_comes_slowly_is_said_to(new_console, new_terminal):
    columns, rows = ANSWERS["POOLS"]
    ended = threading.Event()

    def drip(connection):
        connection.send(wire.row_description(*columns))
        while not ended.wait(0.2):
            connection.send(wire.data_row(*rows[0]))
        connection.send(wire.data_row(*rows[0]), wire.command_complete("SHOW"), wire.ready())

    terminal = new_terminal().start(*at(new_console(POOLS=drip)))
    terminal.wait("the console has been sending an answer for ")
    ended.set()
    terminal.wait_gone("has been sending")
    terminal.wait("main     app")


def test_notifications_take_no_memory(new_console, new_terminal):
    sent = threading.Event()
    notification = wire.message("A", b"\0\0\0\1channel\0" + b"x" * 1000 + b"\0")

    def flood(connection):
        for _ in range(64):
            connection.send(notification * 1000)
        sent.set()
        connection.send(wire.command_complete("SHOW"), wire.ready())

    console = new_console(ADVICE=flood)
    # ASan keeps what was freed.
    terminal = new_terminal(ASAN_OPTIONS="detect_leaks=1:quarantine_size_mb=1").start(*at(console))
    terminal.wait("main     app")
    assert sent.is_set()
    (process,) = terminal.processes()
    with open(f"/proc/{process}/statm") as file:
        pages = int(file.read().split()[1])
    assert pages * os.sysconf("SC_PAGE_SIZE") < 48 << 20


def test_console_that_ends_amid_rows(new_console, new_terminal):
    columns, rows = ANSWERS["POOLS"]
    broken = threading.Event()

    def end(connection):
        if broken.is_set():
            connection.send(wire.row_description(*columns), wire.data_row(*rows[0])[:20])
            connection.close()
        else:
            connection.send(table(columns, rows))

    console = new_console(POOLS=end)
    terminal = new_terminal().start(*at(console), "-i", "0.2")
    terminal.wait("main     app")
    broken.set()
    # The figures of before stay.
    assert "main     app" in terminal.wait("not connected since")
    broken.clear()
    terminal.press("r")
    assert "main     app" in terminal.wait_gone("not connected since")


@pytest.mark.parametrize("answer", [
    wire.message("G", b"\0\0\0"), wire.message("H", b"\0\0\0"), wire.message("I") + wire.ready(),
    wire.message("T", b"\xff\xff"), b"\0" * 100, wire.notice("\x1b[31mboo") + wire.error("XX000", "no") + wire.ready(),
])
def test_answers_that_are_none(new_console, new_terminal, answer):
    terminal = new_terminal().start(*at(new_console(POOLS=answer)), "--no-colour")
    wait_until(lambda: any(
        text in terminal.screen() for text in ("not connected", "not answered for", "no pool", "refuses SHOW POOLS")
    ), 15, "a word of it")
    assert "\x1b[31m" not in terminal.screen("-e")
    terminal.press("q")
    assert terminal.status() == "0"


def test_no_byte_of_a_refusal_controls_the_terminal():
    def refuse(connection):
        connection.accept_startup()
        connection.send(wire.error("28000", "\x1b]0;owned\x07\x1b[31mred\u009b", "FATAL"))
        connection.close()

    server = FakeServer(refuse)
    try:
        done = run_once("--once", "-h", HOST, "-p", server.port, "-U", "admin")
    finally:
        server.stop()
    assert done.returncode == 2
    assert r"\x1b]0;owned\x07\x1b[31mred\x9b" in done.stderr
    assert not [sign for sign in done.stderr if ord(sign) < 32 and sign != "\n"]


def test_console_that_says_no(pooler, cluster, new_terminal):
    terminal = new_terminal().start(*at(pooler, "app"))
    terminal.wait("not allowed")
    terminal.press("q")
    terminal.wait_prompt()
    # A PostgreSQL is no console: each SHOW is refused, and no other is asked for.
    terminal.start("-h", cluster.host, "-p", cluster.port, "-U", "app", "-d", "main")
    terminal.wait("The console refuses SHOW POOLS")
    terminal.press("s")
    terminal.wait("The console refuses SHOW SERVERS")
    done = run_once("--once", *at(pooler, "app"))
    assert done.returncode == 2 and "not allowed" in done.stderr


def test_pooler_that_restarts(new_pooler, new_terminal):
    pooler = new_pooler({"pool_mode": "transaction"})
    pooler.connect(application_name="reporting").execute("SELECT 1")
    terminal = new_terminal().start(*at(pooler), "-i", "0.2")
    terminal.wait("main     app")
    pooler.close_clients()
    pooler.signal(signal.SIGINT)
    terminal.wait("not connected since")
    assert "main     app" in terminal.screen()
    pooler.wait_exit()
    pooler.start()
    terminal.wait_gone("not connected since", 30)
    terminal.wait("no pool")
    terminal.press("q")
    terminal.wait_prompt()


def test_pooler_that_is_taken_over(new_pooler, new_terminal):
    pooler = new_pooler({"pool_mode": "transaction"})
    pooler.connect(application_name="reporting").execute("SELECT 1")
    terminal = new_terminal().start(*at(pooler), "-i", "0.2")
    terminal.wait("main     app")
    pooler.take_over()
    terminal.wait_gone("not connected since", 30)
    terminal.press("c")
    terminal.wait("reporting")
    terminal.press("q")
    terminal.wait_prompt()


def test_pooler_that_does_not_answer(pooler, new_terminal):
    terminal = new_terminal().start(*at(pooler), "-i", "0.2")
    terminal.wait("[p pools]")
    terminal.wait("every 0.2 s")
    stop_process(pooler.process)
    try:
        terminal.wait("the console has not answered for")
        terminal.press("h")
        terminal.wait("Nothing here changes the pooler")
    finally:
        resume_process(pooler.process)
    terminal.wait_gone("the console has not answered for")
    terminal.press("q")
    terminal.wait_prompt()


def test_password_is_asked_for(new_pooler, new_terminal):
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"admin": "a secret"})
    terminal = new_terminal().start(*at(pooler))
    terminal.wait("Password:")
    terminal.tmux("send-keys", "-l", "a secret")
    terminal.press("Enter")
    assert "secret" not in terminal.wait("[p pools]")
    terminal.press("q")
    terminal.wait_prompt()
    # A wrong one is not tried twice.
    terminal.type("clear")
    terminal.wait_gone("Password:")
    terminal.start(*at(pooler))
    terminal.wait("Password:")
    terminal.press("x", "Enter")
    assert terminal.status() == "2" and "authentication" in terminal.said()
    # As psql has it.
    assert run_once("--once", "-i", "0.1", *at(pooler), PGPASSWORD="a secret").returncode == 0
    done = run_once("--once", "-w", *at(pooler))
    assert done.returncode == 2 and "password" in done.stderr
    pooler.close_clients()


# --- keys ------------------------------------------------------------------------------------------


def test_escape_counts_with_a_key_close_behind_it(new_console, new_terminal):
    terminal = new_terminal().start(*at(new_console()), "-i", "0.2")
    terminal.wait("[p pools]")
    for second in ("Right", "Escape"):
        terminal.press("/", "z")
        terminal.wait("filter: z_")
        terminal.tmux("send-keys", "Escape", second)
        terminal.wait_gone("filter: ")
        terminal.wait("1 row, every")
    terminal.press("q")
    assert terminal.status() == "0"


def test_keys_choose_sort_filter_and_scroll(new_console, new_terminal):
    columns, rows = ANSWERS["CLIENTS"]
    clients = [[f"0x{number + 16:x}", "", *rows[0][2:7], f"web-{number:03}"] for number in range(200)]
    console = new_console(CLIENTS=(columns, clients))
    terminal = new_terminal(width=100, height=20).start(*at(console))
    terminal.wait("[p pools]")
    terminal.press("3")
    terminal.wait("200 rows")
    assert "web-000" in terminal.wait("STATE*")
    terminal.press("PPage", "NPage")
    terminal.wait_gone("web-000")
    terminal.press("End")
    terminal.wait("web-199")
    terminal.press("Up", "k", "k")
    terminal.wait_gone("web-199")
    terminal.press("Home")
    terminal.wait("web-000")
    terminal.press(">")
    terminal.wait("APPLICATION*")
    terminal.press("R")
    terminal.wait("web-199")
    terminal.press("/")
    terminal.tmux("send-keys", "-l", "WEB-07q")
    terminal.wait("filter: WEB-07q_")
    terminal.press("BSpace", "Enter")
    assert "web-079" in terminal.wait("10 rows")
    assert "web-080" not in terminal.screen()
    terminal.press("Escape")
    terminal.wait("200 rows")
    terminal.press("Space")
    terminal.wait("PAUSED")
    before = len(console.asked)
    terminal.press("Tab", "BTab", "+")
    terminal.wait("PAUSED")
    assert len(console.asked) <= before + 1
    terminal.press("Space")
    terminal.wait_gone("PAUSED")
    terminal.press("+", "-", "-")
    terminal.wait("[c clients]")
    terminal.press("Right", "Right", "Right")
    terminal.wait_gone("web-199")
    # A key of another terminal is none of the digits in it.
    terminal.tmux("send-keys", "-H", "1b", "5b", "34", "7e")
    terminal.press("/", "x")
    assert "[c clients]" in terminal.wait("filter: x_")
    terminal.press("C-c")
    terminal.wait_prompt()
    assert PROMPT in terminal.screen()
