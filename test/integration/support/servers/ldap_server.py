# SPDX-License-Identifier: ISC
"""An LDAP server, slapd, with some users in its directory."""

import base64
import contextlib
import os
import signal
import socket
import subprocess

from support.process import (
    HOST, as_service, drop_folder, free_port, make_folder, own, resume_process, run, stop_process, wait_until,
)
from support.servers.certificates import Authority

BASE = "dc=example,dc=net"
PEOPLE = f"ou=people,{BASE}"
HIDDEN = f"ou=hidden,{BASE}"
# Longer than 256 bytes.
DEEP_UNITS = [name * 100 for name in "edcb"]
DEEP = "".join(f"ou={name}," for name in reversed(DEEP_UNITS)) + BASE
MANAGER = f"cn=manager,{BASE}"
MANAGER_PASSWORD = 'manager, "quoted"'

LONG_PASSWORD = "0123456789abcdef" * 100

# The users by uid: the password, and further attributes.
PASSWORDS = {
    "app": "app's secret",
    "alice": "Passwort für Älice",
    "bob": LONG_PASSWORD,
    "o'neil, \"jr\" = x": "odd",
    "jörg": "umlaut",
    "plain_login": "plain secret",
    "md5_login": "md5 secret",
    "scram_login": "scram secret",
}

CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCACertificateFile {authority}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
database mdb
maxsize 16777216
suffix "{base}"
rootdn "{manager}"
rootpw {password}
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to dn.subtree="{hidden}" by anonymous auth by users read
access to * by * read
"""


def encode(name, value):
    """A line of LDIF with any value."""
    return f"{name}:: {base64.b64encode(value.encode()).decode()}\n"


def escape(value):
    """A value in a DN: RFC 4514."""
    return "".join(
        f"\\{each}" if each in ',=+<>#;"\\' else each for each in value
    )


def person(uid, password, parent=PEOPLE, **attributes):
    """An entry."""
    lines = [encode("dn", f"uid={escape(uid)},{parent}"), "objectClass: inetOrgPerson\n"]
    values = {"uid": uid, "cn": uid, "sn": "x", "userPassword": password, **attributes}
    return "".join(lines + [encode(name, value) for name, value in values.items()])


def entries():
    """The whole directory, as LDIF."""
    tree = [
        f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: x\n",
        f"dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people\n",
        f"dn: {HIDDEN}\nobjectClass: organizationalUnit\nou: hidden\n",
    ]
    parent = BASE
    for name in DEEP_UNITS:
        parent = f"ou={name},{parent}"
        tree.append(f"dn: {parent}\nobjectClass: organizationalUnit\nou: {name}\n")
    people = [
        person(uid, password, mail=f"mail-{number}@example.net", employeeType="worker")
        for number, (uid, password) in enumerate(PASSWORDS.items())
    ]
    # Two users with the same mail, and one that only authenticated users can find.
    people += [person(f"twin{number}", "twin", mail="twin@example.net") for number in (1, 2)]
    people += [person("carol", "hidden secret", HIDDEN), person("expired_login", "at the bottom", DEEP)]
    return "\n".join(tree + people)


class Directory:
    """An LDAP server on two ports: one for clear text and StartTLS, one for TLS."""

    def __init__(self):
        self.folder = make_folder("pgusher-slapd-")
        self.port = free_port()
        self.tls_port = free_port()
        self.process = None
        self.authority = Authority("Directory CA")
        self.certificate, self.key = self.authority.issue("localhost", "DNS:localhost,IP:127.0.0.1")
        self.log_path = os.path.join(self.folder, "log")
        os.mkdir(os.path.join(self.folder, "data"))
        own(os.path.join(self.folder, "data"))
        self.config = self._write("slapd.conf", self._config_text())
        people = self._write("people.ldif", entries())
        run(["/usr/sbin/slapadd", "-f", self.config, "-l", people])
        self.start()

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        own(path)
        return path

    def _config_text(self):
        return CONFIG.format(
            folder=self.folder,
            authority=self.authority.certificate,
            certificate=self.certificate,
            key=self.key,
            base=BASE,
            hidden=HIDDEN,
            manager=MANAGER,
            password='"' + MANAGER_PASSWORD.replace('"', '\\"') + '"',
        )

    @property
    def environment(self):
        """What a daemon needs to trust the server's certificate."""
        return {"LDAPTLS_CACERT": self.authority.certificate}

    def start(self):
        """Start the server and wait until it listens."""
        urls = f"ldap://{HOST}:{self.port} ldaps://{HOST}:{self.tls_port}"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                as_service(["/usr/sbin/slapd", "-f", self.config, "-h", urls, "-d", "0"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        wait_until(self._is_up, 20, "slapd to listen")

    def _is_up(self):
        assert self.process.poll() is None, f"slapd ended with {self.process.returncode}"
        with contextlib.suppress(OSError):
            for port in (self.port, self.tls_port):
                socket.create_connection((HOST, port), 1).close()
            return True
        return False

    @contextlib.contextmanager
    def hung(self):
        """Within this block the server accepts connections and answers nothing."""
        stop_process(self.process)
        try:
            yield
        finally:
            resume_process(self.process)

    def stop(self):
        """End the server."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def destroy(self):
        """Stop and remove everything."""
        self.process.kill()
        self.process.wait()
        self.authority.destroy()
        drop_folder(self.folder)
