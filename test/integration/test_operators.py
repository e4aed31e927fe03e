# SPDX-License-Identifier: ISC
"""In the places of PgBouncer that operators of Kubernetes make: CloudNativePG's Pooler, PGO's proxy and
Zalando's connection pooler. Each test does to the program what that operator does: its name, its files,
its user, its console commands and its signals."""

import os
import signal
import string
import subprocess

import psycopg
import pytest

from support.kubelet import Volume
from support.process import HOST, own, run, service_user, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import Cluster, configure
from support.servers.pooler import binary

PASSWORD = "of the application"


@pytest.fixture(scope="module")
def authority():
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def server(authority):
    """A PostgreSQL with TLS, an application's role, and the function and role that look it up."""
    made = Cluster()
    crt, key = authority.issue("app-rw", "DNS:app-rw,IP:127.0.0.1")
    configure(made.data, {
        "ssl": "on", "ssl_cert_file": f"'{crt}'", "ssl_key_file": f"'{key}'",
        "ssl_ca_file": f"'{authority.certificate}'",
    })  # fmt: skip
    hba = os.path.join(made.data, "pg_hba.conf")
    rules = open(hba).read()
    with open(hba, "w") as file:
        file.write("hostssl all looks_up_by_cert 127.0.0.1/32 cert\n")
        file.write("hostssl all looks_up,shopper 127.0.0.1/32 scram-sha-256\nhost all shopper all reject\n")
        file.write(rules)
    made.restart()
    made.sql(f"""
        SET password_encryption = 'scram-sha-256';
        CREATE ROLE shopper LOGIN PASSWORD '{PASSWORD}';
        CREATE ROLE looks_up LOGIN PASSWORD 'looks up';
        CREATE ROLE looks_up_by_cert LOGIN;
        CREATE SCHEMA pooler;
        GRANT USAGE ON SCHEMA pooler TO looks_up;
        CREATE FUNCTION public.user_search(uname text) RETURNS TABLE (usename name, passwd text)
            LANGUAGE sql SECURITY DEFINER
            AS 'SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = uname';
        CREATE FUNCTION pooler.user_lookup(i_username text, OUT uname text, OUT phash text)
            LANGUAGE sql SECURITY DEFINER
            AS 'SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = i_username';
    """)
    made.sql("CREATE DATABASE shop OWNER shopper")
    for database in ("postgres", "shop"):
        made.ask(database, """
            CREATE SCHEMA pgbouncer;
            GRANT USAGE ON SCHEMA pgbouncer TO looks_up;
            CREATE FUNCTION pgbouncer.get_auth(username text)
                RETURNS TABLE (username text, password text) LANGUAGE sql SECURITY DEFINER
                AS 'SELECT rolname::text, rolpassword FROM pg_authid WHERE rolname = $1 AND rolcanlogin';
        """)
    yield made
    made.destroy()


@pytest.fixture
def place(new_pooler, server):
    """The place of a PgBouncer: a folder, and the program by the name that operators use."""
    made = new_pooler(start=False, cluster=server)
    os.makedirs(made.path("usr/bin"))
    os.symlink(binary(), made.path("usr/bin/pgbouncer"))
    made.program = made.path("usr/bin/pgbouncer")
    return made


def shop(pooler, **options):
    """A client of the application, over TLS as its driver has it by default."""
    options = {"sslmode": "require", **options}
    return psycopg.connect(
        host=HOST, port=pooler.port, user="shopper", password=PASSWORD, dbname="shop",
        autocommit=True, connect_timeout=10, **options)


def encrypted_backends(server, user="shopper"):
    """How many servers of this user PostgreSQL has, all of which must be encrypted."""
    rows = server.sql(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = %s", [user])
    assert all(row["ssl"] for row in rows)
    return len(rows)


def name_of(process):
    """What pkill --exact compares with."""
    with open(f"/proc/{process.pid}/comm") as file:
        return file.read().strip()


def copy(pooler, name, path, mode=0o600):
    """A certificate or key in the folder of the pooler."""
    made = pooler.write(name, open(path).read())
    os.chmod(made, mode)
    return made


# --- CloudNativePG ----------------------------------------------------------------------------

CNPG = """
[databases]
* = host={host} port={server}

[pgbouncer]
pool_mode = transaction
auth_user = looks_up_by_cert
auth_query = SELECT usename, passwd FROM public.user_search($1)
auth_dbname = postgres
auth_type = hba
auth_hba_file = {scratch}/configs/pg_hba.conf
auth_file = {scratch}/configs/userlist.txt
admin_users = pgbouncer
listen_addr = *
listen_port = {port}
unix_socket_dir = {scratch}/run
ignore_startup_parameters = extra_float_digits,options
log_stats = 0
client_tls_sslmode = prefer
client_tls_cert_file = {scratch}/configs/client-tls.crt
client_tls_key_file = {scratch}/configs/client-tls.key
server_tls_sslmode = verify-ca
server_tls_ca_file = {scratch}/configs/server-ca.crt
server_tls_cert_file = {scratch}/configs/auth.crt
server_tls_key_file = {scratch}/configs/auth.key
default_pool_size = {size}
"""
CNPG_HBA = "local pgbouncer pgbouncer peer\nhost all all 0.0.0.0/0 md5\nhost all all ::/0 md5\n"


def write_for_cnpg(pooler, server, size=5):
    pooler.config_path = pooler.write("scratch/configs/pgbouncer.ini", CNPG.format(
        host=server.host, server=server.port, port=pooler.port, scratch=pooler.path("scratch"),
        size=size))


def start_for_cnpg(pooler, server, authority):
    for name in ("scratch", "scratch/run", "scratch/configs"):
        os.mkdir(pooler.path(name))
        own(pooler.path(name))
    pooler.write("scratch/configs/pg_hba.conf", CNPG_HBA)
    pooler.write("scratch/configs/userlist.txt", "")
    for name, pair in (("client-tls", authority.issue("app-pooler", "IP:127.0.0.1")),
                       ("auth", authority.issue("looks_up_by_cert"))):
        copy(pooler, f"scratch/configs/{name}.crt", pair[0])
        copy(pooler, f"scratch/configs/{name}.key", pair[1])
    copy(pooler, "scratch/configs/server-ca.crt", authority.certificate)
    write_for_cnpg(pooler, server)
    # The operator writes only settings that it knows: the others come from the pod's environment.
    pooler.start(program=pooler.program, environment={"PGUSHER_PRESETS": "compat_version=1.25.2"})


def cnpg_console(pooler, *commands):
    """What the instance manager does: no password, over the socket, as user pgbouncer."""
    words = [word for command in commands for word in ("-c", command)]
    return run(
        ["psql", "-X", "-A", "-t", "-F", "|", "-h", pooler.path("scratch/run"), "-p", str(pooler.port),
         "-U", "pgbouncer", "-d", "pgbouncer", *words]).stdout  # fmt: skip


@pytest.mark.skipif(not service_user(), reason="certificates of roles are for the service user")
def test_as_cloudnativepg_runs_it(place, server, authority):
    start_for_cnpg(place, server, authority)
    assert name_of(place.process) == "pgbouncer"
    with shop(place) as client:
        assert client.execute("SELECT current_user").fetchone() == ("shopper",)
    # Drivers send these, and PgBouncer has to ignore them.
    with shop(place, options="-c extra_float_digits=2") as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
    assert encrypted_backends(server) >= 1 and encrypted_backends(server, "looks_up_by_cert") >= 1
    # Its metrics are read by position: older versions know 16 or 17, and 17 or 23 columns.
    for topic, counts in (("POOLS", {17}), ("STATS", {23}), ("LISTS", {2})):
        rows = cnpg_console(place, f"SHOW {topic};").splitlines()
        assert rows and {len(row.split("|")) for row in rows} == counts, topic
    # PAUSE of a Pooler, and its end.
    cnpg_console(place, "PAUSE;")
    # The connections are closed; PostgreSQL's processes need a moment to end.
    wait_until(lambda: not encrypted_backends(server))
    cnpg_console(place, "RESUME;")
    with shop(place) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
    # A changed Pooler: the files are written, then RELOAD.
    write_for_cnpg(place, server, size=9)
    cnpg_console(place, "RELOAD;")
    assert "default_pool_size|9|" in cnpg_console(place, "SHOW CONFIG;")
    # Its end: SIGINT, with a transaction that may finish.
    client = shop(place)
    client.autocommit = False
    client.execute("SELECT 1")
    place.signal(signal.SIGINT)
    place.wait_log("got SIGINT, shutting down")
    assert client.execute("SELECT 2").fetchone() == (2,)
    client.commit()
    assert place.wait_exit() == 0
    client.close()
    # Every line is one that its parser of log lines knows.
    pattern = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [A-Z]{3} \[\d+\] (NOISE|DEBUG|LOG|WARNING|ERROR|FATAL) |^\t"
    assert len(place.lines(pattern)) == len(place.log().splitlines())


# --- PGO --------------------------------------------------------------------------------------

PGO = """\
# Generated by postgres-operator. DO NOT EDIT.
# Your changes will not be saved.

[pgbouncer]
%include {mount}/pgbouncer.ini

[pgbouncer]
auth_file = {mount}/~postgres-operator/users.txt
auth_query = SELECT username, password from pgbouncer.get_auth($1)
auth_user = looks_up
client_tls_ca_file = {mount}/~postgres-operator/frontend-ca.crt
client_tls_cert_file = {mount}/~postgres-operator/frontend-tls.crt
client_tls_key_file = {mount}/~postgres-operator/frontend-tls.key
client_tls_sslmode = require
conffile = {mount}/~postgres-operator.ini
ignore_startup_parameters = extra_float_digits
listen_addr = *
listen_port = {port}
server_tls_ca_file = {mount}/~postgres-operator/backend-ca.crt
server_tls_sslmode = verify-full
unix_socket_dir =
{more}
[databases]
* = host={host} port={server}
"""


def pgo_files(pooler, server, authority, pair, more=""):
    read = lambda path: open(path).read()
    return {
        "pgbouncer.ini": "",
        "~postgres-operator.ini": PGO.format(
            mount=pooler.path("etc"), port=pooler.port, host=server.host, server=server.port, more=more),
        "~postgres-operator/users.txt": '"looks_up" "looks up"\n"watcher" "watches"\n',
        "~postgres-operator/frontend-ca.crt": read(authority.certificate),
        "~postgres-operator/frontend-tls.crt": read(pair[0]),
        "~postgres-operator/frontend-tls.key": read(pair[1]),
        "~postgres-operator/backend-ca.crt": read(authority.certificate),
    }


@pytest.mark.parametrize("how", ["sidecar", "watch_config"])
def test_as_pgo_runs_it(place, server, authority, how):
    pair = authority.issue("app-pgbouncer", "IP:127.0.0.1")
    # spec.proxy.pgBouncer.config.global
    common = "stats_users = watcher\npool_mode = transaction\n"
    common += "watch_config = 1\n" if how == "watch_config" else ""
    volume = Volume(
        place.path("etc"), pgo_files(place, server, authority, pair, common))
    place.config_path = volume.file("~postgres-operator.ini")
    before = set(os.listdir(place.folder))
    place.start(program=place.program)
    # Nothing is written: the root is read-only, and there is no socket.
    assert set(os.listdir(place.folder)) <= before | {"stderr", "suppressions"}  # of the tests
    with shop(place, sslmode="verify-full", sslrootcert=authority.certificate) as client:
        assert client.execute("SELECT current_user").fetchone() == ("shopper",)
    with pytest.raises(psycopg.OperationalError, match="SSL required"):
        shop(place, sslmode="disable")
    assert encrypted_backends(server) == 1
    # The agent of metrics.
    with psycopg.connect(
        host=HOST, port=place.port, user="watcher", password="watches", dbname="pgbouncer",
        sslmode="require", autocommit=True, cursor_factory=psycopg.ClientCursor,
    ) as console:  # fmt: skip
        names = [each.name for each in console.execute("SHOW LISTS").description]
        assert names == ["list", "items"]
        # The operator changes the file; it arrives by a swapped link.
        volume.update(pgo_files(
            place, server, authority, pair, common + "default_pool_size = 7\n"))
        if how == "sidecar":
            # As the sidecar does, but among the children of this process only.
            run(["pkill", "-HUP", "--exact", "--parent", str(os.getpid()), "pgbouncer"], as_root=True)

        def size():
            rows = console.execute("SHOW CONFIG").fetchall()
            return next(row[1] for row in rows if row[0] == "default_pool_size")

        wait_until(lambda: size() == "7")
    assert len(place.lines("got SIGHUP")) == (how == "sidecar")


# --- Zalando ----------------------------------------------------------------------------------

# The image has the template, and envsubst replaces the variables, which the operator sets.
ZALANDO = """
[databases]
* = host=$PGHOST port=$PGPORT auth_user=$PGUSER
postgres = host=$PGHOST port=$PGPORT auth_user=$PGUSER

[pgbouncer]
pool_mode = $CONNECTION_POOLER_MODE
listen_port = $CONNECTION_POOLER_PORT
listen_addr = *
unix_socket_dir =
auth_type = md5
auth_dbname = postgres
auth_file = $FOLDER/userlist.txt
admin_users = $PGUSER
stats_users = $INFRASTRUCTURE_ROLES
auth_query = SELECT * FROM $PGSCHEMA.user_lookup($1)
default_pool_size = $CONNECTION_POOLER_DEFAULT_SIZE
reserve_pool_size = $CONNECTION_POOLER_RESERVE_SIZE
max_client_conn = $CONNECTION_POOLER_MAX_CLIENT_CONN
max_db_connections = $CONNECTION_POOLER_MAX_DB_CONN
min_pool_size = $CONNECTION_POOLER_MIN_SIZE
server_tls_sslmode = require
client_tls_sslmode = require
client_tls_cert_file = $CONNECTION_POOLER_CLIENT_TLS_CRT
client_tls_key_file = $CONNECTION_POOLER_CLIENT_TLS_KEY
ignore_startup_parameters = extra_float_digits,options
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become uid 100")
def test_as_zalandos_operator_runs_it(place, server, authority):
    pair = authority.issue("app-pooler", "IP:127.0.0.1")
    values = {
        "PGHOST": server.host, "PGPORT": server.port, "PGUSER": "looks_up", "PGSCHEMA": "pooler",
        "CONNECTION_POOLER_PORT": place.port, "CONNECTION_POOLER_MODE": "transaction",
        "CONNECTION_POOLER_DEFAULT_SIZE": 5, "CONNECTION_POOLER_MIN_SIZE": 2,
        "CONNECTION_POOLER_RESERVE_SIZE": 1, "CONNECTION_POOLER_MAX_CLIENT_CONN": 1000,
        "CONNECTION_POOLER_MAX_DB_CONN": 60, "INFRASTRUCTURE_ROLES": "watcher",
        "CONNECTION_POOLER_CLIENT_TLS_CRT": copy(place, "tls.crt", pair[0]),
        "CONNECTION_POOLER_CLIENT_TLS_KEY": copy(place, "tls.key", pair[1]),
        "FOLDER": place.folder,
    }  # fmt: skip
    place.write("pgbouncer.ini", string.Template(ZALANDO.replace("$1", "$$1")).substitute(values))
    place.write("userlist.txt", '"looks_up" "looks up"\n')
    for name in ("pgbouncer.ini", "userlist.txt", "tls.crt", "tls.key"):
        # A single file that is mounted by subPath: read-only, and it never changes.
        os.chown(place.path(name), 100, 101)
        os.chmod(place.path(name), 0o400)
    # A uid that no line of /etc/passwd need have, in a folder that is not its own.
    with open(place.log_path, "ab") as log:
        place.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "--reuid=100", "--regid=101", "--clear-groups",
             place.program, place.path("pgbouncer.ini")],
            cwd="/", env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    place.wait_up()
    # The readiness probe connects and sends nothing; no line of the log may come of it.
    lines = len(place.log().splitlines())
    for _ in range(3):
        place.raw().close()
    with shop(place) as client:
        assert client.execute("SELECT current_user").fetchone() == ("shopper",)
    told = [line for line in place.log().splitlines()[lines:] if "(nodb)" in line]
    assert len(told) == 1 and "registered new auto-database: shop" in told[0]
    assert encrypted_backends(server) >= 1
