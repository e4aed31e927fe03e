# SPDX-License-Identifier: ISC
"""A real Prometheus reads a real overload: the dashboard and the alerts of etc/grafana, and the
community's rules, queries of dashboards included, find what they look for."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import Closed, ServerError
from support.process import HOST, as_service, free_port, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program
from support.servers.fake_server import FakeServer
from support.servers.pooler import Pooler
from support.servers.prometheus import FOLDER, TESTS, Prometheus, promtool, sample

pytest.importorskip("prometheus_client")
pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(not shutil.which("prometheus"), reason="there is no Prometheus")

DASHBOARD = json.loads(sample("pgusher-dashboard.json"))
NAME = re.compile(r"\bpg(?:usher|bouncer)_\w+")
VARIABLES = {"$instance": ".*", "$database": ".*", "$__rate_interval": "30s"}

# Three statements for servers that keep two.
STATEMENTS = "SELECT 1;\nSELECT 2;\nSELECT 3;\n"

# What the panels of the mixin ask for.
MIXIN_QUERIES = """
rate(pgbouncer_stats_queries_pooled_total[1m])
rate(pgbouncer_stats_queries_duration_seconds_total[1m])
rate(pgbouncer_stats_sql_transactions_pooled_total[1m])
rate(pgbouncer_stats_server_in_transaction_seconds_total[1m])
rate(pgbouncer_stats_received_bytes_total[1m])
rate(pgbouncer_stats_sent_bytes_total[1m])
increase(pgbouncer_stats_queries_duration_seconds_total[1m]) / increase(pgbouncer_stats_queries_pooled_total[1m])
pgbouncer_pools_client_active_connections
pgbouncer_pools_client_waiting_connections
pgbouncer_pools_client_maxwait_seconds
pgbouncer_pools_server_active_connections
pgbouncer_pools_server_idle_connections
pgbouncer_pools_server_used_connections
pgbouncer_pools_server_testing_connections
pgbouncer_pools_server_login_connections
pgbouncer_databases_current_connections
pgbouncer_databases_max_connections
pgbouncer_config_max_client_connections
pgbouncer_config_max_user_connections
"""


def stay_in_transaction(connection):
    """Accept a login; each query begins a transaction, which does not end."""
    connection.login()
    connection.serve(lambda _, sql: wire.command_complete("BEGIN") + wire.ready("T"))


class Overload:
    """A pool that one silent transaction blocks, one that pgbench overloads, one with more servers
    than the community thinks right, a standby that lags, statements evicted all the time, a host
    that is down, and clients that are refused."""

    def __init__(self, replicas, stack):
        self.primary, self.standby = replicas.settle(synchronous=False)
        self.stack = stack
        authority = Authority()
        stack.callback(authority.destroy)
        self.authority = authority.certificate
        certificate, key = authority.issue("pooler", f"IP:{HOST}", days=7)
        fake = FakeServer(stay_in_transaction)
        stack.callback(fake.stop)
        place = {"host": self.primary.host, "port": self.primary.port, "dbname": "main"}
        both = {**place, "host": f"{self.primary.host},{self.standby.host}"}
        self.metrics = free_port()
        self.pooler = Pooler(
            {
                "pool_mode": "transaction", "metrics_port": self.metrics, "max_client_conn": 1000,
                "max_prepared_statements": 2, "max_user_connections": 200, "max_pool_waiters": 30,
                "client_tls_sslmode": "allow", "client_tls_cert_file": certificate,
                "client_tls_key_file": key, "host_check_interval": "0.2", "server_login_retry": 1,
                "log_min_duration": 0, "log_slow_rate": 1,
            },
            databases={
                "stuck": {**place, "pool_size": 1},
                "busy": {**place, "pool_size": 2},
                "reads": {**both, "target_session_attrs": "prefer-standby"},
                "many": fake.target(pool_size=250),
                "away": {"host": HOST, "port": free_port()},
            },
            users={"app": {"max_user_connections": 500}},
        )  # fmt: skip
        stack.callback(self.pooler.destroy)
        stack.callback(self.pooler.close_clients)
        self.encrypted = Pooler({
            "metrics_port": free_port(), "metrics_tls": 1, "page_password": "of browsers",
            "client_tls_cert_file": certificate, "client_tls_key_file": key,
        })  # fmt: skip
        stack.callback(self.encrypted.destroy)

    def begin(self):
        """Start everything that lasts."""
        self.encrypted.start()
        pooler = self.pooler.start()
        holder = pooler.client(database="stuck", application_name="report")
        holder.query("BEGIN")
        for _ in range(30):
            pooler.client(database="stuck").send(wire.query("SELECT 1"))
        self.began = time.monotonic()
        script = pooler.write("script", STATEMENTS)
        self.bench = self.stack.enter_context(
            running([
                shutil.which("pgbench") or program("pgbench"), "-n", "-M", "prepared", "-c", "25",
                "-T", "600", "-R", "200", "-f", script, "-h", HOST, "-p", str(pooler.port),
                "-U", "app", "busy",
            ])
        )  # fmt: skip
        pooler.client(database="busy").query("CREATE TEMP TABLE left_behind ()")
        self.standby.pause_replay()
        pooler.client(database="reads").query("SELECT 1")
        self.primary.ask("main", "CREATE TABLE lagging AS SELECT generate_series(1, 1000)")
        for _ in range(205):
            pooler.client(database="many").query("BEGIN")
        pooler.raw().send_startup("app", "away")

    def stir(self):
        """What is counted: refused logins, queries without a place in the queue, errors."""
        pooler = self.pooler
        for _ in range(15):
            pooler.refused(database="nowhere")
        late = pooler.client(database="stuck")
        with contextlib.suppress(Closed, ServerError):
            late.query("SELECT 1")
        with contextlib.suppress(ServerError):
            pooler.client(database="reads").query("SELECT 1/0")
        pooler.command("SET max_client_conn = 1")
        pooler.refused()
        pooler.command("SET max_client_conn = 1000")


@contextlib.contextmanager
def running(command):
    """A program that is killed at the end."""
    process = subprocess.Popen(
        as_service(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def overload(replicas):
    with contextlib.ExitStack() as stack:
        made = Overload(replicas, stack)
        made.begin()
        with open(os.path.join(TESTS, "community.yml")) as file:
            made.prometheus = Prometheus(
                made.metrics, made.encrypted.settings["metrics_port"], made.authority,
                {"community.yml": file.read()},
            )  # fmt: skip
        stack.callback(made.prometheus.destroy)
        made.prometheus.start()
        made.stir()
        yield made
        made.standby.resume_replay()
        made.primary.ask("main", "DROP TABLE lagging")


def panels():
    """The panels of the dashboard without its rows."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expression(target):
    """The query of a target, with a value for each variable."""
    text = target["expr"]
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    assert "$" not in text, text
    return text


# --- without a process ------------------------------------------------------------------------


def test_configuration_and_rules_have_no_mistake():
    promtool("check", "config", "--syntax-only", f"{FOLDER}/prometheus.yml")
    said = promtool("check", "rules", f"{FOLDER}/pgusher-alerts.yml", f"{TESTS}/community.yml")
    assert said.count("SUCCESS") == 2


def test_every_alert_fires_when_it_should():
    promtool("test", "rules", f"{TESTS}/alerts.test.yml")
    rules = set(re.findall(r"- alert: (\w+)", sample("pgusher-alerts.yml")))
    with open(f"{TESTS}/alerts.test.yml") as file:
        tested = set(re.findall(r'alertname="(\w+)"', file.read()))
    assert rules == tested and len(rules) > 20


def test_every_alert_says_what_to_do():
    import yaml

    for group in yaml.safe_load(sample("pgusher-alerts.yml"))["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("critical", "warning", "info")
            notes = rule["annotations"]
            assert set(notes) == {"summary", "description", "runbook"}
            assert re.fullmatch(
                r"Meaning: .+\nLook at: .+\nChange: .+\n", notes["runbook"], re.DOTALL
            ), rule["alert"]


def test_the_dashboard_is_whole():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) > 40
    places = set()
    for panel in DASHBOARD["panels"]:
        where = panel["gridPos"]
        assert where["x"] + where["w"] <= 24
        cells = {
            (x, y)
            for x in range(where["x"], where["x"] + where["w"])
            for y in range(where["y"], where["y"] + where["h"])
        }
        assert not cells & places, panel["title"]
        places |= cells
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}" and panel["description"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters and len(letters) == len(set(letters)), panel["title"]
        unit = panel["fieldConfig"]["defaults"].get("unit")
        assert unit or panel["type"] in ("heatmap", "table"), panel["title"]
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))
    variables = {each["name"]: each["type"] for each in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "instance": "query", "database": "query"}
    assert DASHBOARD["schemaVersion"] >= 38 and DASHBOARD["uid"] == "pgusher"


# --- the overload -----------------------------------------------------------------------------


def test_every_panel_of_the_dashboard_has_data(overload):
    empty = {
        f"{panel['title']}: {expression(target)}"
        for panel in panels()
        for target in panel["targets"]
    }

    def ask():
        nonlocal empty
        empty = {each for each in empty if not overload.prometheus.numbers(each.split(": ", 1)[1])}
        return not empty

    with contextlib.suppress(AssertionError):
        wait_until(ask, 15, "data", interval=0.5)
    assert not empty, empty


def test_every_metric_that_is_asked_for_exists(overload):
    names = scrape(overload.metrics).names()
    asked = set(NAME.findall(json.dumps(DASHBOARD) + sample("pgusher-alerts.yml")))
    asked -= {"pgbouncer_exporter"}
    assert asked <= names, asked - names
    assert len(asked) > 50


def test_metrics_are_scraped_over_tls(overload):
    wait_until(lambda: overload.prometheus.numbers('pgbouncer_up{job="pgusher-tls"}') == [1], 10)


def test_the_variables_of_the_dashboard_have_values(overload):
    for each in DASHBOARD["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", each["definition"]).groups()
        query = expression({"expr": f"count by ({label}) ({metric})"})
        assert overload.prometheus.numbers(query), each["name"]


def test_queries_of_the_communitys_dashboards_have_data(overload):
    for query in MIXIN_QUERIES.strip().splitlines():
        wait_until(lambda: overload.prometheus.numbers(query), 10, query, interval=0.2)


def test_alerts_tell_of_the_overload(overload):
    """Most wait for their time: that they fire after it is tested with promtool."""
    expected = {
        "PgusherPoolFull", "PgusherClientsWaitLong", "PgusherQueriesUnsent", "PgusherClientsRejected",
        "PgusherServerLoginsFail", "PgusherHostDown", "PgusherStatementsEvicted", "PgusherCertificateEnds",
    }  # fmt: skip
    stirred = 0

    def all_there():
        nonlocal stirred
        if time.monotonic() > stirred + 3:
            stirred = time.monotonic()
            overload.stir()
        return expected <= overload.prometheus.alerts().keys()

    with contextlib.suppress(AssertionError):
        wait_until(all_there, 60, "the alerts", interval=0.5)
    alerts = overload.prometheus.alerts()
    assert expected <= alerts.keys(), expected - alerts.keys()
    full = {each["labels"]["database"] for each in alerts["PgusherPoolFull"]}
    assert "stuck" in full and "many" not in full
    for each in sum(alerts.values(), []):
        for note in each["annotations"].values():
            assert "error" not in note or "{{" not in note, note
            assert "<no value>" not in note and "error expanding" not in note, note
    assert {rule["health"] for rule in overload.prometheus.rules().values()} == {"ok"}


def test_alerts_of_the_community_tell_of_the_overload(overload):
    """As they are: five minutes are too long for a test, so that they wait for their time."""
    expected = {
        "PGBouncerHighNumberClientWaitingConnections", "PGBouncerHighClientWaitTime",
        "PGBouncerHighServerConnectionSaturationWarning",
        "PGBouncerHighServerConnectionSaturationCritical", "PgbouncerActiveConnections",
        "PgbouncerErrors", "PgbouncerMaxConnections",
    }  # fmt: skip
    overload.stir()
    with contextlib.suppress(AssertionError):
        wait_until(lambda: expected <= overload.prometheus.alerts().keys(), 25, interval=0.5)
    alerts = overload.prometheus.alerts()
    assert expected <= alerts.keys(), expected - alerts.keys()
    assert "PgBouncerDown" not in alerts
    states = {each["state"] for each in alerts["PgbouncerErrors"] + alerts["PgbouncerMaxConnections"]}
    assert states == {"firing"}


def test_alerts_tell_of_a_process_that_is_gone(overload):
    overload.bench.kill()
    overload.pooler.stop()
    overload.encrypted.stop()
    gone = {"PgusherDown", "PgBouncerDown"}
    wait_until(lambda: gone <= overload.prometheus.alerts().keys(), 10, "alerts", interval=0.2)
