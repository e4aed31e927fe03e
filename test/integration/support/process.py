# SPDX-License-Identifier: ISC
"""Processes, ports, folders and waiting.

PostgreSQL and the daemon refuse to run as root, so tests run by root start them as another user,
the service user. The kernel ends each child together with this process, so that an interrupted run
leaves none.
"""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HOST = "127.0.0.1"

# Tests wait so many times longer than they say: sanitizers slow the daemon down that much.
PATIENCE = float(os.environ.get("PGUSHER_TEST_PATIENCE", 1))


def service_user():
    """The passwd entry of the service user; None when the tests do not run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("no user to run the servers as")


@contextlib.contextmanager
def as_daemon_user():
    """Connect as the service user: the kernel reports the uid of the connecting process."""
    user = service_user()
    if user:
        os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        if user:
            os.seteuid(0)


def service_uid():
    """The uid that children run with."""
    user = service_user()
    return user.pw_uid if user else os.getuid()


def own(path):
    """Give a file or folder to the user that children run as."""
    user = service_user()
    if user:
        os.chown(path, user.pw_uid, user.pw_gid)


def make_folder(prefix):
    """A new temporary folder that children may write to and all users may enter."""
    path = tempfile.mkdtemp(prefix=prefix)
    os.chmod(path, 0o755)
    own(path)
    return path


def drop_folder(path):
    """Remove a temporary folder, unless PGUSHER_TEST_KEEP is set."""
    if not os.environ.get("PGUSHER_TEST_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


def as_service(arguments, as_root=False, death_signal=signal.SIGKILL):
    """The command line that runs arguments as the service user and ends with this process."""
    user = service_user()
    command = ["setpriv", f"--pdeathsig={death_signal.name[3:]}"]
    if user and not as_root:
        command += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return command + [os.fspath(argument) for argument in arguments]


def run(arguments, check=True, timeout=60, as_root=False, **options):
    """Run a program as the service user to its end; its output is text."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run(
        as_service(arguments, as_root), text=True, timeout=timeout, cwd="/", **options
    )
    if check and done.returncode != 0:
        raise AssertionError(
            f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done


_given_ports = set()


def own_ports():
    """The ports that this test process may use: below those that the kernel assigns to clients."""
    ports = range(12000, 32000)
    share = len(ports) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return ports[number * share : (number + 1) * share]


def free_port():
    """A port that is not in use and that was not returned before."""
    while True:
        port = random.SystemRandom().choice(own_ports())
        if port in _given_ports:
            continue
        try:
            with socket.socket() as four, socket.socket(socket.AF_INET6) as six:
                four.bind((HOST, port))
                if socket.has_ipv6:
                    with contextlib.suppress(OSError):
                        six.bind(("::1", port))
        except OSError:
            continue
        _given_ports.add(port)
        return port


def stop_process(process):
    """Stop a child until resume_process(); it does nothing more when this returns."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def resume_process(process):
    """Let a stopped child continue."""
    process.send_signal(signal.SIGCONT)


def has_ended(pid):
    """Whether a process has ended, also if its parent has not asked for its exit status."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class WaitTimeout(AssertionError):
    """A condition did not come true in its time."""


def wait_until(condition, timeout=10.0, what=None, interval=0.01):
    """Poll until condition() is true and return its value; the only place where tests pause."""
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise WaitTimeout(f"waited {timeout} s for {what or condition}, last saw {value!r}")
        time.sleep(interval)


def stays(condition, seconds=0.5, interval=0.02):
    """Assert that condition() holds over a short while: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), "did not stay true"
        time.sleep(interval)
