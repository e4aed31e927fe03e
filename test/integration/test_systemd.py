# SPDX-License-Identifier: ISC
"""The service manager: notifications, sockets it passes, and the shutdown that it waits for."""

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from support import proxy_headers
from support.clients.metrics_page import ask
from support.clients.raw import Closed, RawClient
from support.process import HOST, drop_folder, free_port, make_folder, run, service_user, wait_until
from support.servers.pooler import binary

ETC = os.path.join(os.path.dirname(__file__), "..", "..", "etc")
UNIT, TEMPLATE = (os.path.join(ETC, name) for name in ("pgusher.service", "pgusher@.service"))


@pytest.fixture(scope="module", autouse=True)
def built():
    if "systemd: yes" not in run([binary(), "--version"]).stdout:
        pytest.skip("built without libsystemd")


class Manager:
    """The receiving end of NOTIFY_SOCKET, as a service manager has."""

    def __init__(self, name):
        """An @ at the beginning of the name is the abstract name space."""
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name[0] == "@" else name)
        if name[0] != "@":
            os.chmod(name, 0o777)
        self.received = []

    def wait(self, pattern, timeout=10):
        """The next message that matches; those before it are kept in `received`."""
        self.socket.settimeout(timeout)
        while True:
            text = self.socket.recv(65536).decode()
            self.received.append(text)
            if re.search(pattern, text):
                return text

    def silent(self, pattern, seconds):
        """Whether no message that matches comes for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self.wait(pattern, left)
            except TimeoutError:
                return True
            return False
        return True


@pytest.fixture(params=["path", "abstract"])
def manager(request):
    folder = make_folder("pgusher-manager-")
    name = f"{folder}/notify" if request.param == "path" else f"@pgusher-test-{os.getpid()}"
    manager = Manager(name)
    yield manager
    manager.socket.close()
    drop_folder(folder)


def started(new_pooler, manager, settings=None, **environment):
    pooler = new_pooler(settings, start=False)
    pooler.start(environment={"NOTIFY_SOCKET": manager.name, **environment})
    return pooler


# Notifications


def test_ready_is_sent_when_the_daemon_serves(new_pooler, manager):
    pooler = new_pooler(start=False)
    pooler.spawn(environment={"NOTIFY_SOCKET": manager.name})
    assert manager.wait("READY") == "READY=1"
    # At once, without a second attempt.
    RawClient(pooler.address).close()
    assert not pooler.lines("systemd support was not built")


def test_a_reload_by_signal_is_notified_from_begin_to_end(new_pooler, manager):
    pooler = started(new_pooler, manager)
    manager.wait("READY")
    before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    pooler.signal(signal.SIGHUP)
    text = manager.wait("RELOADING")
    stamp = int(re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", text).group(1))
    assert before <= stamp <= time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    assert manager.wait("READY") == "READY=1"
    # Also when the file is faulty: the daemon goes on.
    pooler.write("pgusher.ini", "nonsense\n")
    pooler.allow(".")
    pooler.signal(signal.SIGHUP)
    manager.wait("RELOADING")
    manager.wait("READY")


def test_the_console_sends_no_notification(new_pooler, manager):
    pooler = started(new_pooler, manager)
    manager.wait("READY")
    pooler.command("RELOAD")
    assert manager.silent("RELOADING|READY|STOPPING", 0.5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_is_sent_once(new_pooler, manager, number):
    pooler = started(new_pooler, manager)
    manager.wait("READY")
    client = pooler.client()
    client.query("BEGIN")
    pooler.signal(number)
    assert manager.wait("STOPPING") == "STOPPING=1"
    pooler.signal(number)
    pooler.wait_exit()
    assert manager.silent("STOPPING", 0.2)


def test_the_status_is_the_line_of_the_stats(new_pooler, manager):
    started(new_pooler, manager, {"stats_period": 1, "log_stats": 0})
    text = manager.wait("STATUS")
    number = r"\d+"
    assert re.fullmatch(
        f"STATUS=stats: {number} xacts/s, {number} queries/s, {number} client parses/s, "
        f"{number} server parses/s, {number} binds/s, {number} client logins/s, "
        f"in {number} B/s, out {number} B/s, "
        f"xact {number} μs, query {number} μs, wait {number} μs", text)


def test_the_status_says_how_far_a_pause_is_in_place_of_the_stats(new_pooler, manager):
    pooler = started(new_pooler, manager, {"pool_mode": "transaction", "stats_period": 1})
    holder = pooler.client()
    holder.query("BEGIN")
    pooler.signal(signal.SIGUSR1)
    assert re.match(
        r"STATUS=PAUSE has waited \d s: 1 of 1 server is still in use, 1 in a transaction; ",
        manager.wait("STATUS=PAUSE"))
    seen = len(manager.received)
    manager.wait("STATUS=PAUSE has waited [2-9] s")
    assert not [each for each in manager.received[seen:] if "stats" in each]
    holder.query("COMMIT")
    assert manager.wait("complete") == "STATUS=PAUSE is complete: no server is in use"
    assert manager.silent("STATUS", 1.5)
    pooler.signal(signal.SIGUSR2)
    assert manager.wait("STATUS") == "STATUS=serving clients"
    manager.wait("STATUS=stats")


def test_the_status_says_how_far_a_shutdown_is(new_pooler, manager):
    pooler = started(
        new_pooler, manager, {"pool_mode": "transaction", "shutdown_timeout": 1000})
    clients = [pooler.client(), pooler.client()]
    clients[0].query("BEGIN")
    pooler.signal(signal.SIGTERM)
    assert manager.wait("STOPPING") == "STOPPING=1"
    clients[1].leave()
    text = manager.wait("STATUS=.* 1 of 2 clients has left")
    assert re.fullmatch(
        r"STATUS=SHUTDOWN WAIT_FOR_CLIENTS has waited \d s: 1 of 2 clients has left, 1 remain, 1 in "
        r"a transaction; idle clients are closed; the oldest transaction is open for \d s \(client "
        r"\d+ of main/app at \S+, idle in transaction\); at most [19][0-9,]+ s more", text)
    # What `journalctl -f` shows meanwhile.
    pooler.wait_log("LOG SHUTDOWN WAIT_FOR_CLIENTS has waited")
    clients[0].query("COMMIT")


def test_the_status_says_what_a_reload_has_done(new_pooler, manager):
    pooler = started(new_pooler, manager)
    manager.wait("READY")
    pooler.databases["extra"] = {}
    pooler.write_config()
    pooler.signal(signal.SIGHUP)
    assert re.fullmatch(
        r"STATUS=RELOAD: read 2 files with 2 databases and 6 users in \d+ ms, applied in \d+ ms; "
        r"1 database added", manager.wait("STATUS"))
    assert manager.wait("READY") == "READY=1"


def test_the_watchdog_is_notified_by_a_loop_that_turns(new_pooler, manager):
    pooler = started(new_pooler, manager, WATCHDOG_USEC="1000000")
    for _ in range(3):
        manager.wait("^WATCHDOG=1$", 1)
    pooler.signal(signal.SIGSTOP)
    assert manager.silent("WATCHDOG", 1.5) or manager.silent("WATCHDOG", 1.5)
    pooler.signal(signal.SIGCONT)
    manager.wait("^WATCHDOG=1$")


def test_the_watchdog_is_not_notified_if_a_worker_is_stuck(new_pooler, manager, folder):
    library = os.path.join(folder, "stuck.so")
    source = os.path.join(os.path.dirname(__file__), "support", "compiled", "stuck_thread.c")
    # From its standard input: the service user may not be allowed to read the checkout.
    with open(source) as file:
        run([shutil.which("cc"), "-D_GNU_SOURCE", "-shared", "-fPIC", "-xc", "-", "-o", library], stdin=file)
    os.chmod(library, 0o755)
    arm = os.path.join(folder, "arm")
    pooler = started(
        new_pooler, manager, {"workers": 3}, WATCHDOG_USEC="400000", LD_PRELOAD=library,
        PGUSHER_STUCK_THREAD="pgusher-work-2", PGUSHER_STUCK_ARM=arm,
        ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
    for _ in range(3):
        manager.wait("^WATCHDOG=1$", 2)
    with open(arm, "w"):
        # One may be on its way.
        assert manager.silent("WATCHDOG", 1.5) or manager.silent("WATCHDOG", 1.5)
    os.unlink(arm)
    for _ in range(3):
        manager.wait("^WATCHDOG=1$", 5)
    assert pooler.client().value("SELECT 1") == "1"


def test_a_manager_that_hangs_delays_no_client(new_pooler, manager):
    pooler = started(new_pooler, manager, {"stats_period": 1}, WATCHDOG_USEC="20000")
    manager.wait("READY")
    client = pooler.client()
    stats = len(pooler.lines("stats:"))
    while len(pooler.lines("stats:")) < stats + 3:
        # Meanwhile more messages are sent than fit into its socket.
        client.query("SELECT 1", timeout=2)
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("re-reading config")
    client.query("SELECT 1", timeout=2)
    # It receives the important ones when it reads again.
    assert manager.wait("READY") == "READY=1"


def test_no_notification_is_sent_without_a_manager(new_pooler):
    pooler = new_pooler()
    with open(f"/proc/{pooler.process.pid}/maps") as maps:
        assert "libsystemd" not in maps.read()


# Sockets


class Passed:
    """Listening sockets, and how to pass them."""

    def __init__(self):
        self.sockets = []
        self.names = []

    def add(self, sock, address, name="clients"):
        sock.bind(address)
        sock.listen(16)
        self.sockets.append(sock)
        self.names.append(name)
        return sock

    def start(self, pooler):
        """Start with the sockets from descriptor 3 on, as a service manager would."""
        # Anywhere in this process, away from the numbers that the shell assigns.
        copies = [fcntl.fcntl(sock, fcntl.F_DUPFD, 20) for sock in self.sockets]
        moves = " ".join(f"{3 + i}<&{copy} {copy}<&-" for i, copy in enumerate(copies))
        script = f'exec env LISTEN_PID=$$ "$@" {moves}'
        environment = {
            "LISTEN_FDS": str(len(copies)), "LISTEN_FDNAMES": ":".join(self.names)
        }
        try:
            return pooler.start(
                environment=environment, wrap=["/bin/bash", "-c", script, "sh"], pass_fds=copies)
        finally:
            for copy in copies:
                os.close(copy)


@pytest.fixture
def passed():
    passed = Passed()
    yield passed
    for sock in passed.sockets:
        sock.close()


def test_passed_sockets_take_proxy_headers(new_pooler, passed):
    pooler = new_pooler(
        {"proxy_protocol": "required", "proxy_networks": f"unix {HOST}"}, start=False)
    tcp = passed.add(socket.socket(), (HOST, 0))
    path = pooler.path("passed")
    passed.add(socket.socket(socket.AF_UNIX), path)
    os.chmod(path, 0o777)
    pooler.allow("ignored")
    pooler.port = tcp.getsockname()[1]  # for the harness
    passed.start(pooler)
    for number, address in enumerate(((HOST, pooler.port), path)):
        with RawClient(address) as client:
            client.send(proxy_headers.line("10.1.2.3", 1000 + number)).login()
            pooler.wait_log(f"main/app@10.1.2.3:{1000 + number} login attempt")


def test_passed_sockets_replace_all_own_listeners(new_pooler, passed, tmp_path):
    pooler = new_pooler(start=False)
    tcp = passed.add(socket.socket(), (HOST, 0))
    path = pooler.path("passed")
    passed.add(socket.socket(socket.AF_UNIX), path)
    os.chmod(path, 0o777)
    pooler.allow("ignored")
    own_port = pooler.port
    pooler.port = tcp.getsockname()[1]  # for the harness
    passed.start(pooler)
    with RawClient((HOST, pooler.port)) as client:
        assert client.login().value("SELECT 1") == "1"
    with RawClient(path) as client:
        assert client.login().value("SELECT 2") == "2"
    with pytest.raises(OSError):
        RawClient((HOST, own_port))
    assert pooler.lines("sockets passed from service manager, cf_listen_addr ignored")
    assert pooler.lines("sockets passed from service manager, cf_unix_socket_dir ignored")
    for number in (3, 4):
        assert pooler.lines(rf"socket passed from service manager \(fd {number}\)")
    pooler.signal(signal.SIGQUIT)
    assert pooler.wait_exit() == 0
    assert os.path.exists(path)  # it belongs to the manager


@pytest.mark.parametrize("address, works", [("0.0.0.0", False), (HOST, True)])
def test_passed_sockets_that_others_reach_need_a_password(new_pooler, passed, tmp_path, address, works):
    pooler = new_pooler(start=False)
    tcp = passed.add(socket.socket(), (address, 0))
    fd = tcp.fileno()
    user = ["-u", service_user().pw_name] if service_user() else []
    command = [
        "/bin/bash", "-c", f'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&{fd}', "sh",
        binary(), *user, "--listen", str(pooler.port), "--to", f"host={HOST} port=1 user=app"]
    log = tmp_path / "log"
    with open(log, "w") as file, \
            subprocess.Popen(command, pass_fds=[fd], stdout=file, stderr=file) as process:
        try:
            wait_until(lambda: process.poll() is not None or "process up" in log.read_text())
            refusal = "--to without a password: a socket that was passed is open to other machines"
            assert (process.poll(), refusal in log.read_text()) == ((None, False) if works else (1, True))
        finally:
            process.kill()


def test_a_client_that_connects_between_two_processes_is_served_by_the_second(new_pooler, passed):
    pooler = new_pooler(start=False)
    tcp = passed.add(socket.socket(), (HOST, 0))
    pooler.port = tcp.getsockname()[1]
    pooler.allow("ignored")
    waiting = RawClient((HOST, pooler.port)).send_startup()
    passed.start(pooler)
    assert waiting.finish_login("app").value("SELECT 1") == "1"


def test_after_a_drain_delay_passed_sockets_are_left_to_the_next_process(new_pooler, passed):
    first, second = (new_pooler({"drain_delay": "200ms"}, start=False) for _ in range(2))
    tcp = passed.add(socket.socket(), (HOST, 0))
    for pooler in (first, second):
        pooler.port = tcp.getsockname()[1]
        pooler.allow("ignored")
    passed.start(first)
    client = first.client()
    first.signal(signal.SIGTERM)
    first.wait_log("no new logins")
    waiting = RawClient((HOST, first.port)).send_startup()
    client.leave()
    assert first.wait_exit() == 0
    passed.start(second)
    assert waiting.finish_login("app").value("SELECT 1") == "1"


def test_a_socket_that_does_not_listen_is_refused(new_pooler, passed):
    pooler = new_pooler(start=False)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((HOST, 0))
    passed.sockets.append(sock)
    passed.names.append("clients")
    pooler.allow(".")
    with pytest.raises(Exception):
        passed.start(pooler)
    assert pooler.lines(r"FATAL socket passed from service manager \(fd 3\) is no stream socket")


def test_a_socket_called_metrics_serves_metrics_whatever_the_settings(new_pooler, passed):
    elsewhere = free_port()
    pooler = new_pooler({"metrics_port": elsewhere}, start=False)
    port = passed.add(socket.socket(), (HOST, 0), "metrics").getsockname()[1]
    passed.start(pooler)
    assert pooler.lines("serving metrics on a socket passed from service manager")
    for _ in range(2):
        assert ask(port, "/readyz").text == "ready\n"
        with pytest.raises(OSError):
            ask(elsewhere, "/readyz")
        pooler.reload()
    assert pooler.client().value("SELECT 1") == "1"


@pytest.mark.skipif(
    not shutil.which("systemd-socket-activate"), reason="no systemd-socket-activate here")
def test_the_socket_activator_of_systemd(new_pooler):
    pooler = new_pooler(start=False)
    pooler.allow("ignored")
    activator = [shutil.which("systemd-socket-activate"), "--listen", f"{HOST}:{pooler.port}"]
    pooler.spawn(wrap=activator)
    client = wait_until(lambda: connected(pooler))
    assert client.login().value("SELECT 1") == "1"


def connected(pooler):
    try:
        return RawClient(pooler.address)
    except OSError:
        return None


# Shutdown


@pytest.mark.setting("shutdown_timeout")
def test_a_shutdown_ends_at_its_timeout(new_pooler):
    pooler = new_pooler({"shutdown_timeout": 1})
    busy, idle = pooler.client(), pooler.client()
    busy.query("BEGIN")
    console = pooler.console(unix=True)
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("got SIGTERM")
    assert busy.value("SELECT 1") == "1"
    # Idle clients leave before.
    assert idle.fatal().is_(
        "FATAL", "57P01", "terminating connection due to administrator command")
    assert busy.fatal().is_("FATAL", "57P01", "server shutting down")
    with pytest.raises(Closed):
        console.read()
    assert pooler.wait_exit() == 0
    assert pooler.lines("shutdown_timeout is over, exiting")


def test_a_timeout_of_zero_is_no_limit(pooler):
    client = pooler.client()
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("got SIGTERM")
    assert client.silent(1)
    assert client.value("SELECT 1") == "1"
    client.leave()
    assert pooler.wait_exit() == 0


def test_a_timeout_may_be_set_while_it_runs(pooler):
    client = pooler.client()
    client.query("BEGIN")
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    pooler.command("SET shutdown_timeout = '500ms'")
    assert client.fatal().text == "server shutting down"
    assert pooler.wait_exit() == 0


def test_a_preset_comes_before_the_file(new_pooler):
    pooler = new_pooler(start=False)
    pooler.start("--preset=shutdown_timeout=60", "--preset", "max_client_conn=77")
    assert pooler.setting("shutdown_timeout") == "60"
    assert pooler.setting("max_client_conn") == "77"
    pooler.settings["max_client_conn"] = 78
    pooler.write_config()
    pooler.reload()
    assert pooler.setting("shutdown_timeout") == "60"
    assert pooler.setting("max_client_conn") == "78"


@pytest.mark.parametrize("preset", ["nonsense", "no_such=1", "listen_port=none"])
def test_a_wrong_preset_is_reported(new_pooler, preset):
    pooler = new_pooler(start=False)
    done = run([binary(), "--check", f"--preset={preset}", pooler.config_path], check=False)
    assert done.returncode == 1 and f": {preset}: " in done.stdout


# Units


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
@pytest.mark.parametrize("unit", [UNIT, TEMPLATE], ids=["service", "template"])
def test_units_are_hardened(unit):
    # Not as the service user, which may be unable to enter the checkout.
    done = run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        check=False,
        as_root=True,
    )
    score = re.search(r"Overall exposure level for pgusher\S*.service: ([0-9.]+)", done.stdout)
    assert score and float(score.group(1)) <= 1.5, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_units_have_no_mistakes():
    folder = make_folder("pgusher-units-")
    names = {"pgusher.service": "", "pgusher@1.service": "", "pgusher.socket": "",
             "pgusher.service.d/pam.conf": "pgusher-pam.conf"}
    os.mkdir(f"{folder}/pgusher.service.d")
    for name, sample in names.items():
        with open(os.path.join(ETC, sample or name.replace("@1", "@"))) as file:
            text = file.read()
        with open(f"{folder}/{name}", "w") as file:
            file.write(text.replace("/usr/bin/pgusher", "/bin/true"))
    done = run(
        ["systemd-analyze", "verify", "--man=no", *(f"{folder}/{name}" for name in names if ".d/" not in name)],
        check=False,
        as_root=True,
    )
    # What it says of units of this machine is not of these.
    assert not [line for line in done.stderr.splitlines() if "pgusher" in line], done.stderr
    drop_folder(folder)


def lines(unit):
    """The lines of a unit that are neither empty nor comments."""
    with open(unit) as file:
        return [line.strip() for line in file if re.match(r"[^#\s]", line)]


def test_the_template_is_the_service_but_for_its_number():
    theirs = lines(TEMPLATE)
    for line in (" (process %i)", "/%i", " --preset=so_reuseport=1 --preset=peer_id=%i $OPTS"):
        theirs = [text.replace(line, "") for text in theirs]
    assert [text for text in theirs if not re.match("Environment(File)?=", text)] == lines(UNIT)


@pytest.mark.parametrize("unit", [UNIT, TEMPLATE], ids=["service", "template"])
def test_a_reload_has_the_options_of_the_start(unit):
    (start,) = [line for line in lines(unit) if line.startswith("ExecStart=")]
    (reload,) = [line for line in lines(unit) if line.startswith("ExecReload=")]
    assert reload == start.replace("ExecStart=/usr/bin/pgusher", "ExecReload=/usr/bin/pgusher --reload=${MAINPID}")


def test_presets_of_the_unit_are_settings(new_pooler):
    (line,) = [line for line in lines(UNIT) if line.startswith("ExecStart=")]
    presets = [word for word in line.split() if word.startswith("--preset=")]
    assert "--preset=shutdown_timeout=60" in presets
    pooler = new_pooler(start=False)
    run([binary(), "--check", *presets, pooler.config_path])
