# SPDX-License-Identifier: ISC
"""The PROXY protocol: the real address of a client counts, and only proxies may tell it."""

import contextlib
import os
import re
import ssl

import pytest

from support import proxy_headers, wire
from support.clients.metrics_page import ask
from support.clients.raw import RawClient, ServerError, cancel
from support.process import HOST, as_daemon_user, free_port, service_uid, wait_until
from support.servers.certificates import Authority
from support.servers.haproxy import HaProxy

STARTUP = wire.startup({"user": "app", "database": "main"})
SLEEP = "SELECT pg_sleep(60)"
LIMIT = ("FATAL", "53300", "client connections exceeded (max_client_conn_per_address)")
MISSING = ("FATAL", "08P01", "PROXY header missing (proxy_protocol)")
ELSEWHERE = "127.0.0.9"
DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "doc", "high-availability.md")


@pytest.fixture(scope="module")
def authority():
    """The authority that all in these tests trust."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture
def make(new_pooler):
    """Make a daemon behind a proxy at 127.0.0.1; its console is a Unix socket."""

    def make_it(mode="required", networks=f"{HOST}/32", settings=None, start=True, **options):
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "proxy_protocol": mode,
                "proxy_networks": networks,
                **(settings or {}),
            },
            start=start,
            **options,
        )
        if start:
            use_unix(pooler)
        return pooler

    return make_it


@pytest.fixture
def new_haproxy():
    """Start HAProxy: new_haproxy(config, port, ...)."""
    with contextlib.ExitStack() as stack:

        def start(config, *ports):
            haproxy = HaProxy(config)
            stack.callback(haproxy.destroy)
            return haproxy.wait_up(*ports)

        yield start


def use_unix(pooler):
    """Run console commands over the Unix socket: TCP is for proxies."""
    pooler._console = pooler.keep(pooler.superuser())


def connect(pooler, *parts, source=None, unix=False):
    """A connection that has sent these bytes."""
    address = pooler.socket_path if unix else pooler.address
    return pooler.keep(RawClient(address, source=source)).send(*parts)


def row_of(pooler, port):
    """The row of SHOW CLIENTS of the client with this port."""
    (row,) = pooler.clients(port=port)
    return row


# --- what the address counts for ---------------------------------------------------------------


@pytest.mark.setting("proxy_protocol", "proxy_networks")
@pytest.mark.parametrize("header", [proxy_headers.line, proxy_headers.tcp])
def test_the_address_in_the_header_is_the_clients(make, header):
    pooler = make(settings={"application_name_add_host": 1, "verbose": 1})
    client = connect(pooler, header("10.1.2.3", 4660)).login(application_name="here")
    assert client.value("SHOW application_name") == "here - 10.1.2.3:4660"
    row = row_of(pooler, 4660)
    assert (row["addr"], row["local_addr"], row["local_port"]) == ("10.1.2.3", HOST, str(pooler.port))
    (socket_row,) = pooler.show("SOCKETS", port=4660)
    assert socket_row["addr"] == "10.1.2.3"
    assert pooler.lines(rf"@{HOST}:\d+ P: relays a connection from 10.1.2.3:4660")
    assert pooler.lines("C-.*: main/app@10.1.2.3:4660 login attempt")
    client.close()
    pooler.wait_log("main/app@10.1.2.3:4660 closing because: client unexpected eof")


def test_rules_are_about_the_address_in_the_header(make):
    pooler = make(
        settings={"auth_type": "hba", "auth_hba_file": "rules"}, start=False)
    pooler.write("rules", "host all all 10.1.0.0/16 trust\nhost all all fd00::/8 trust\n")
    pooler.settings["auth_hba_file"] = pooler.path("rules")
    pooler.write_config()
    pooler.start()
    for source in ("10.1.2.3", "fd00::5"):
        assert connect(pooler, proxy_headers.line(source, 5, source)).login().value("SELECT 1") == "1"
    # An IPv4 address as a proxy with one socket for both families sends it.
    connect(pooler, proxy_headers.line("::ffff:10.1.2.3", 5, "::1")).login()
    for header in (
        proxy_headers.tcp("10.2.0.1", 5),
        # The proxy's own address has no rights.
        proxy_headers.LOCAL,
        proxy_headers.UNSPECIFIED,
        proxy_headers.UNKNOWN,
        proxy_headers.unix(),
    ):
        error = connect(pooler, header).send_startup().fatal()
        assert (error.sqlstate, error.text) == ("28000", "no authentication method is found")


def test_limits_are_about_the_address_in_the_header(make):
    pooler = make(settings={"max_client_conn_per_address": 1})
    first = connect(pooler, proxy_headers.tcp("10.1.2.3", 1)).login()
    second = connect(pooler, proxy_headers.line("10.1.2.4", 2)).login()
    assert connect(pooler, proxy_headers.tcp("10.1.2.3", 3), STARTUP).fatal().is_(*LIMIT)
    # One whose header has not come is not counted for it, also when the counts are made anew.
    third = connect(pooler, proxy_headers.tcp("10.1.2.4", 4)[:-1])
    pooler.settings["max_client_conn_per_address"] = 2
    pooler.reload()
    third.send(proxy_headers.tcp("10.1.2.4", 4)[-1:]).login()
    assert connect(pooler, proxy_headers.tcp("10.1.2.4", 5), STARTUP).fatal().is_(*LIMIT)
    # The new process of a takeover counts them likewise.
    pooler.take_over()
    use_unix(pooler)
    assert row_of(pooler, 4)["addr"] == "10.1.2.4"
    assert connect(pooler, proxy_headers.tcp("10.1.2.4", 6), STARTUP).fatal().is_(*LIMIT)
    connect(pooler, proxy_headers.tcp("10.1.2.3", 7)).login()
    for client in (first, second, third):
        assert client.value("SELECT 1") == "1"


def test_failures_delay_the_address_in_the_header(make):
    pooler = make(settings={"auth_type": "plain", "auth_failure_delay": 20}, auth={"app": "x"})
    for source in ("10.1.2.3", "10.1.2.4"):
        client = connect(pooler, proxy_headers.tcp(source, 1)).send_startup()
        assert client.read().type == "R"
        client.send(wire.password("wrong"))
        assert client.fatal().sqlstate == "28P01"
        connect(pooler, proxy_headers.tcp(source, 2)).send_startup()
        pooler.wait_log(f"@{source}:2 login waits for 20.0 s")
    connect(pooler, proxy_headers.tcp("10.1.2.5", 1)).login(password="x")


def test_cancel_requests_come_through_proxies(make):
    pooler = make()
    client = connect(pooler, proxy_headers.tcp("10.1.2.3", 1)).login()
    for header in (proxy_headers.line("10.1.2.3", 2), proxy_headers.tcp("10.1.2.3", 3), b""):
        client.send(wire.query(SLEEP))
        wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
        connect(pooler, header, wire.cancel_request(client.key)).closed()
        assert client.result().error.sqlstate == "57014"


# --- where a header may come from --------------------------------------------------------------


@pytest.mark.setting("proxy_protocol", "proxy_networks")
def test_only_proxies_may_send_a_header_and_have_to(make):
    pooler = make(settings={"log_disconnections": 0})
    assert connect(pooler).send_startup().fatal().is_(*MISSING)
    assert connect(pooler, wire.ssl_request()).read_bytes(1) == b"N"
    connect(pooler, source=ELSEWHERE).login()
    assert [row["addr"] for row in pooler.clients()] == [ELSEWHERE]
    assert pooler.client(unix=True).value("SELECT 1") == "1"
    for header in (proxy_headers.line("10.1.2.3", 1), proxy_headers.LOCAL):
        connect(pooler, header, STARTUP, source=ELSEWHERE).fatal().is_(
            "FATAL", "08P01", "PROXY header refused: its source is not in proxy_networks")
        connect(pooler, header, STARTUP, unix=True).fatal().is_(
            "FATAL", "08P01", "PROXY header refused: its source is not in proxy_networks")
    pooler.wait_log(rf"WARNING C-.*@{ELSEWHERE}:\d+ PROXY header refused: its source is not in")


@pytest.mark.setting("proxy_protocol", "proxy_networks")
def test_the_settings_apply_to_new_connections(make):
    pooler = make("off", ELSEWHERE)
    header = proxy_headers.tcp("10.1.2.3", 1)
    connect(pooler, header, STARTUP).fatal().is_(
        "FATAL", "08P01", "PROXY header refused: proxy_protocol is off")
    before = connect(pooler, source=ELSEWHERE)
    direct = pooler.client()
    pooler.settings["proxy_protocol"] = "optional"
    pooler.reload()
    wait_until(lambda: len(pooler.show("LISTS", list="login_clients", items=1)) == 1)
    connect(pooler, header, source=ELSEWHERE).login()
    connect(pooler, source=ELSEWHERE).login()
    pooler.settings["proxy_networks"] = HOST
    pooler.reload()
    connect(pooler, header).login()
    assert connect(pooler, header, source=ELSEWHERE).fatal().sqlstate == "08P01"
    pooler.settings["proxy_protocol"] = "required"
    pooler.reload()
    assert connect(pooler).send_startup().fatal().is_(*MISSING)
    connect(pooler, header).login()
    # A connection that was there before needs none.
    before.login()
    assert direct.value("SELECT 1") == "1"


@pytest.mark.parametrize("mode", ["optional", "required"])
def test_proxies_without_addresses_are_a_mistake(new_pooler, mode):
    pooler = new_pooler({"proxy_protocol": mode}, start=False)
    pooler.allow("cannot load config file")
    assert pooler.run_to_end() == 1
    assert pooler.lines("proxy_protocol: proxy_networks is empty, so a PROXY header would be taken from nowhere")
    pooler.settings["proxy_networks"] = "0.0.0.0/0, ::/0"
    pooler.write_config()
    pooler.start()
    assert len(pooler.lines("WARNING proxy_networks: any client may claim any address")) == 2
    pooler.settings["proxy_networks"] = None
    pooler.write_config()
    with pytest.raises(ServerError):
        pooler.console().query("RELOAD")


# --- hostile bytes ------------------------------------------------------------------------------

TCP = proxy_headers.tcp("10.1.2.3", 1)
REFUSED = {
    "line without CR": (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", "is not printable"),
    "line without end": (b"PROXY UNKNOWN ".ljust(106, b"x"), "longer than 107"),
    "escape sequence": (b"PROXY TCP4 \x1b[2J", "is not printable"),
    "NUL": (b"PROXY TCP4 1.2.3.4\0", "is not printable"),
    "a name": (b"PROXY TCP4 localhost localhost 1 2\r\n", "an address is invalid"),
    "other family": (b"PROXY TCP4 ::1 ::1 1 2\r\n", "an address is invalid"),
    "port": (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", "a port is invalid"),
    "unknown word": (b"PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", "its protocol is none of"),
    "version 3": (proxy_headers.SIGNATURE + b"\x31", "its version is not 2"),
    "command 2": (proxy_headers.SIGNATURE + b"\x22", "neither LOCAL nor PROXY"),
    "family 4": (proxy_headers.SIGNATURE + b"\x21\x41", "family or protocol is unknown"),
    "too long": (proxy_headers.SIGNATURE + b"\x21\x11\xff\xff", "longer than 4096"),
    "too short": (proxy_headers.binary(0x11, b"\0" * 11), "too short for its addresses"),
    "cut TLV": (proxy_headers.tcp("10.1.2.3", 1, tlvs=b"\4\0\2x"), "is cut off"),
    "checksum": (proxy_headers.tcp("10.1.2.3", 1, tlvs=b"\3\0\4abcd"), "its checksum is wrong"),
    "twice": (TCP + TCP, "it is the second one"),
    "both versions": (proxy_headers.line("10.1.2.3", 1) + TCP, "it is the second one"),
    "behind a message": (TCP + wire.gssenc_request(), None),
}


def test_wrong_headers_are_refused_and_leave_nothing(make):
    pooler = make()
    pooler.client(unix=True).close()
    wait_until(lambda: not pooler.clients())
    descriptors = pooler.descriptors()
    for name, (data, fault) in REFUSED.items():
        client = connect(pooler, data)
        if fault is None:
            assert client.read_bytes(1) == b"N"
            client.send(TCP)
            fault = "it is not at the beginning"
        error = client.fatal()
        assert (error.severity, error.sqlstate) == ("FATAL", "08P01"), name
        assert error.text.startswith("PROXY header refused: ") and fault in error.text, name
    wait_until(lambda: pooler.descriptors() == descriptors)
    lines = pooler.lines("PROXY header refused")
    # One a second for an address.
    assert 1 <= len(lines) < len(REFUSED)
    assert all(re.search(r"WARNING C-\S+ \S+ PROXY header refused", line) for line in lines)
    (cache,) = pooler.show("MEM", name="iobuf_cache") or [{"used": "0"}]
    assert cache["used"] == "0"
    assert not any("\x1b" in line for line in pooler.log().splitlines())


def test_headers_may_come_in_any_parts(make):
    pooler = make()
    for header in (proxy_headers.line("10.1.2.3", 1), TCP):
        client = connect(pooler)
        for byte in header + STARTUP:
            client.send(bytes([byte]))
        client.read_until("Z")
        connect(pooler, header + STARTUP).read_until("Z")
        connect(pooler, header, STARTUP + wire.query("SELECT 1")[:3]).read_until("Z")
    # Unfinished ones are closed by the time limit of logins, those of silent proxies too.
    pooler.command("SET client_login_timeout = '0.3'")
    for client in [connect(pooler, part) for part in (b"", b"P", TCP[:5], TCP[:-1], TCP)]:
        assert client.fatal().is_("FATAL", "57014", "client_login_timeout")


# --- TLS ----------------------------------------------------------------------------------------


def tls_settings(authority):
    certificate, key = authority.issue("pooler", "IP:127.0.0.1")
    return {
        "client_tls_sslmode": "prefer",
        "client_tls_cert_file": certificate,
        "client_tls_key_file": key,
        "client_tls_ca_file": authority.certificate,
    }


def encrypt(client, authority, pair=None, alpn=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    if pair:
        context.load_cert_chain(*pair)
    if alpn:
        context.set_alpn_protocols([alpn])
    client.socket = context.wrap_socket(client.socket, server_hostname=HOST)
    return client


@pytest.fixture
def tls_pooler(make, authority):
    """A daemon with TLS, and a rule for certificates from 10.1.0.0/16."""
    pooler = make(settings={"auth_type": "hba", **tls_settings(authority)}, start=False)
    rules = pooler.write("rules", "hostssl all all 10.1.0.0/16 cert\nhostssl all all 127.0.0.5/32 trust\n")
    pooler.settings["auth_hba_file"] = rules
    pooler.write_config()
    return pooler.start()


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_tls_follows_the_header(tls_pooler, authority, direct, unix):
    pair = authority.issue("app")
    tls_pooler.settings["proxy_networks"] = f"unix {HOST}"
    use_unix(tls_pooler)
    tls_pooler.reload()
    for source, accepted in (("10.1.2.3", True), ("10.2.2.3", False)):
        client = connect(tls_pooler, proxy_headers.tcp(source, 1), unix=unix)
        if not direct:
            client.send(wire.ssl_request())
            assert client.read_bytes(1) == b"S"
        encrypt(client, authority, pair, "postgresql" if direct else None)
        if accepted:
            assert client.login().value("SELECT 1") == "1"
        else:
            assert client.send_startup().fatal().sqlstate == "28000"
    # In one write with the header, or behind bytes of the clear.
    client = connect(tls_pooler, proxy_headers.tcp("10.1.2.3", 2) + wire.ssl_request(), unix=unix)
    assert client.read_bytes(1) == b"S"
    encrypt(client, authority, pair).login()
    client = connect(tls_pooler, TCP, wire.ssl_request() + STARTUP, unix=unix)
    with pytest.raises(OSError):
        encrypt(client, authority)


def test_a_header_inside_tls_is_refused(tls_pooler, authority):
    client = encrypt(connect(tls_pooler, TCP), authority, alpn="postgresql").send(TCP)
    client.closed()


# --- other listeners ----------------------------------------------------------------------------


def test_processes_behind_a_proxy_have_no_rights_of_its_process(new_pooler):
    pooler = new_pooler(
        {"proxy_protocol": "required", "proxy_networks": "unix", "auth_type": "hba"}, start=False)
    pooler.settings["auth_hba_file"] = pooler.write(
        "rules", "local all postgres,nobody peer\nlocal all all trust\nhost all all all trust\n")
    pooler.write_config()
    pooler.start()
    operator = wire.startup({"user": "pgbouncer", "database": "pgbouncer"})
    relayed = [proxy_headers.tcp("10.1.2.3", 7), proxy_headers.UNKNOWN, proxy_headers.unix()]
    with as_daemon_user():
        for header in relayed:
            assert connect(pooler, header, operator, unix=True).fatal().severity == "FATAL"
        # The proxy's own connection is one of its process, and needs no header if that is ours.
        for header in (proxy_headers.LOCAL, b""):
            connect(pooler, header, operator, unix=True).read_until("Z")
    client = connect(pooler, relayed[0], unix=True).login()
    use_unix(pooler)
    row = row_of(pooler, 7)
    assert (row["addr"], row["local_addr"], row["local_port"]) == ("10.1.2.3", "unix", str(pooler.port))
    client.close()
    client = connect(pooler, relayed[2], unix=True).login()
    (row,) = pooler.clients()
    assert (row["addr"], row["remote_pid"]) == ("unix", "0")
    if service_uid() != os.getuid():
        assert connect(pooler, unix=True).send_startup().fatal().is_(*MISSING)
    # A takeover connects without a header.
    pooler.close_console()
    pooler.take_over()
    assert client.value("SELECT 1") == "1"


def test_connections_without_a_message_survive_a_takeover(make):
    pooler = make()
    begun = connect(pooler, TCP)
    silent = connect(pooler)
    pooler.wait_log("process up")
    wait_until(lambda: len(pooler.show("LISTS", list="login_clients", items=2)) == 1)
    pooler.take_over()
    use_unix(pooler)
    begun.login()
    assert row_of(pooler, 1)["addr"] == "10.1.2.3"
    silent.send(proxy_headers.tcp("10.1.2.4", 2)).login()
    assert row_of(pooler, 2)["addr"] == "10.1.2.4"


def test_processes_on_one_port_take_headers(make):
    pooler = make(settings={"so_reuseport": 1, "peer_id": 1}, start=False)
    other = make(settings={"so_reuseport": 1, "peer_id": 2}, start=False)
    other.port = pooler.port
    for each in (pooler, other):
        each.peers = [
            f"{n} = host={peer.folder} port={pooler.port}" for n, peer in enumerate((pooler, other), 1)
        ]
        each.write_config()
        each.start()
    clients = [connect(pooler, proxy_headers.tcp("10.1.2.3", i)).login() for i in range(8)]
    for each in (pooler, other):
        use_unix(each)
    shares = [len(each.clients(addr="10.1.2.3")) for each in (pooler, other)]
    assert sum(shares) == 8
    client = clients[0].send(wire.query(SLEEP))
    wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
    for _ in range(4):
        connect(pooler, proxy_headers.tcp("10.1.2.3", 9), wire.cancel_request(client.key)).closed()
    assert client.result().error.sqlstate == "57014"
    pooler.close_clients()


# --- HAProxy ------------------------------------------------------------------------------------


def blocks():
    """The files of the document, by their language."""
    with open(DOCUMENT) as file:
        text = file.read().split("## HAProxy in front of pgusher", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    return {language: content for language, content in found}


def replace(text, *pairs):
    """Replace texts that must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_files_of_the_document(new_pooler, new_haproxy, cluster):
    files = blocks()
    front = free_port()
    group = [new_pooler({"metrics_port": free_port()}, start=False) for _ in range(2)]
    for number, pooler in enumerate(group, 1):
        # Both come to one host here, and so do the balancers.
        rules = pooler.write("pg_hba.conf", replace(files[""], ("10.0.0.0/8", "127.0.0.5/32")))
        text = replace(
            files["ini"],
            ("app = host=192.0.2.20", f"app = host={cluster.host} port={cluster.port} dbname=main"),
            ("1 = host=192.0.2.11", f"1 = host={HOST} port={group[0].port}"),
            ("2 = host=192.0.2.12", f"2 = host={HOST} port={group[1].port}"),
            ("listen_port = 6432", f"listen_port = {pooler.port}\nunix_socket_dir = {pooler.folder}"),
            ("peer_id = 1", f"peer_id = {number}"),
            ("192.0.2.5, 192.0.2.6", f"{HOST}, 127.0.0.6"),
            ("metrics_listen_addr = *", f"metrics_listen_addr = {HOST}"),
            ("9127", str(pooler.settings["metrics_port"])),
            ("/etc/pgusher/pg_hba.conf", rules),
            ("/etc/pgusher/userlist.txt", pooler.auth_path),
        )
        pooler.config_text = lambda text=text: text + "max_client_conn_per_address = 4\n"
        pooler.auth = {"app": "secret"}
        pooler.write_config()
        pooler.start()
        use_unix(pooler)
    haproxy = new_haproxy(
        replace(
            files["haproxy"],
            (":5432", f"{HOST}:{front}"),
            *(
                (f"192.0.2.1{n}:6432 check port 9127",
                    f"{HOST}:{each.port} check port {each.settings['metrics_port']}")
                for n, each in enumerate(group, 1)
            ),
        ),
        front,
    )
    wait_until(lambda: set(haproxy.servers().values()) == {"UP"}, 20, "the checks to pass")

    def login(source="127.0.0.5"):
        client = RawClient((HOST, front), source=source)
        return group[0].keep(client).login("app", "app", "secret")

    clients = [login() for _ in range(6)]
    ports = {str(client.socket.getsockname()[1]) for client in clients}
    rows = [row for each in group for row in each.clients(addr="127.0.0.5")]
    assert {row["port"] for row in rows} == ports and len(rows) == 6
    assert all(len(each.clients()) == 3 for each in group)
    # An address that no rule has, which without the header would be HAProxy's like all others.
    with pytest.raises(ServerError, match="no authentication method is found"):
        login(ELSEWHERE)
    # A cancel request takes any way.
    for client in clients[:4]:
        client.send(wire.query(SLEEP))
        wait_until(lambda: cluster.backends(state="active", query=SLEEP))
        cancel((HOST, front), client.key)
        assert client.result().error.sqlstate == "57014"
    clients += [login(), login()]
    with pytest.raises(ServerError, match="max_client_conn_per_address"):
        login()
    # A pooler that stops gets no new clients.
    assert ask(group[0].settings["metrics_port"], "/readyz").status == 200
    for client in clients:
        client.leave()
    group[0].stop()
    wait_until(lambda: haproxy.servers()["pooler-1"] == "DOWN", 20, "the check to fail")
    assert login().value("SELECT 1") == "1"


FRONTENDS = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
"""
FRONTEND = """
listen {name}
    bind 127.0.0.1:{port}
    {option}
    server pooler {address} {how}
"""


def test_haproxy_sends_each_kind_of_header(tls_pooler, authority, new_haproxy):
    kinds = {
        "v1": ("", "send-proxy"),
        "v2": ("", "send-proxy-v2"),
        "tlvs": ("", "send-proxy-v2 proxy-v2-options ssl,cert-cn,crc32c,unique-id"),
        "tls": ("", "send-proxy-v2-ssl-cn ssl verify required alpn postgresql "
            f"ca-file {authority.certificate}"),
        "unix": ("", "send-proxy-v2"),
        "checks": ("option pgsql-check user bob", "send-proxy-v2 check inter 100ms"),
    }
    ports = {name: free_port() for name in kinds}
    pair = authority.issue("app")
    tls_pooler.settings["proxy_networks"] = f"unix {HOST}"
    tls_pooler.settings["verbose"] = 1
    use_unix(tls_pooler)
    tls_pooler.write(
        "rules", "hostssl all all 127.0.0.6/32 cert\nhost all all 127.0.0.5/32 trust\n"
        # That of HAProxy itself, for its checks.
        "host all bob 127.0.0.1/32 scram-sha-256\n")
    tls_pooler.reload()
    address = f"{HOST}:{tls_pooler.port}"
    haproxy = new_haproxy(
        FRONTENDS + "".join(
            FRONTEND.format(
                name=name, port=ports[name], option=option, how=how,
                address=f"unix@{tls_pooler.socket_path}" if name == "unix" else address)
            for name, (option, how) in kinds.items()
        ),
        *ports.values(),
    )
    for name, port in ports.items():
        client = RawClient((HOST, port), source="127.0.0.5")
        tls_pooler.keep(client).login()
        assert client.value("SELECT 1") == "1"
        row = row_of(tls_pooler, client.socket.getsockname()[1])
        assert row["addr"] == "127.0.0.5", name
        assert bool(row["tls"]) == (name == "tls"), name
        cancel((HOST, port), client.key)
        client.leave()
        if name == "tls":
            continue
        # TLS between the client and pgusher, with its certificate, through HAProxy.
        for direct in (False, True):
            client = tls_pooler.keep(RawClient((HOST, port), source="127.0.0.6"))
            if not direct:
                assert client.send(wire.ssl_request()).read_bytes(1) == b"S"
            encrypt(client, authority, pair, "postgresql" if direct else None).login()
            row = row_of(tls_pooler, client.socket.getsockname()[1])
            assert row["addr"] == "127.0.0.6" and row["tls"]
            client.close()
    wait_until(lambda: haproxy.servers()["pooler"] == "UP", 20, "a check to pass")
    tls_pooler.wait_log("P: a connection of the proxy itself", 2)
    assert not tls_pooler.lines("PROXY header refused")
