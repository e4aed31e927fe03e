# SPDX-License-Identifier: ISC
"""Every setting and every key of an entry has a test of what it does.

A test says whose effect it shows: `@pytest.mark.setting("pool_mode", "databases.pool_mode")` above
one of test/integration, `/* setting: NAME */` above one of test/unit. What is not done yet says so
in its table and needs no test.
"""

import ast
import re

from report import TOP, read, sources, verdict

# In effect, but still without a test. Nothing may be added; with its test, a name goes.
AWAITED = {
    "auth_ldap_options",
    "auth_hba_file",
    "auth_ident_file",
    "client_tls13_ciphers",
    "client_tls_ca_file",
    "client_tls_cert_file",
    "client_tls_ciphers",
    "client_tls_crl_file",
    "client_tls_dheparams",
    "client_tls_ecdhcurve",
    "client_tls_key_file",
    "client_tls_protocols",
    "client_tls_sslmode",
    "databases.load_balance_hosts",
    "dns_max_ttl",
    "dns_nxdomain_ttl",
    "resolv_conf",
    "server_tls13_ciphers",
    "server_tls_ca_file",
    "server_tls_cert_file",
    "server_tls_ciphers",
    "server_tls_crl_file",
    "server_tls_key_file",
    "server_tls_negotiation",
    "server_tls_protocols",
    "server_tls_sslmode",
}

KEY = re.compile(r"\{\"(\w+)\", ENTRY_\w+, FIELD\(\w+\), (\w+)")
UNIT_MARK = re.compile(r"/\* setting: ([\w., ]+) \*/\s+static void test_")


def settings():
    """The name of each setting, and whether it is in effect."""
    text = read("include/config/settings.def").split("*/", 2)[2]
    for row in re.split(r"^SETTING\(", text, flags=re.M)[1:]:
        name = row.split(",", 1)[0]
        yield name, not re.search(r"\bLATER\w*\(", row)


def keys():
    """The name of each key of [databases] and [users], and whether it is in effect."""
    for section in ("database", "user"):
        for name, missing in KEY.findall(read(f"src/config/{section}_config.c")):
            yield f"{section}s.{name}", missing == "NULL"


def is_mark(decorator):
    """Is it pytest.mark.setting(...)?"""
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.setting"


def marks():
    """Each mark: where it stands, and the name it has."""
    for path in sorted((TOP / "test/integration").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            for decorator in filter(is_mark, node.decorator_list):
                for name in decorator.args:
                    yield f"{path.relative_to(TOP)}:{decorator.lineno}", ast.literal_eval(name)
    for path in sources("test/unit"):
        for found in UNIT_MARK.findall(read(path)):
            for name in found.split(","):
                yield str(path), name.strip()


KNOWN = dict([*settings(), *keys()])
MARKS = list(marks())
TESTED = {name for _, name in MARKS}

untested = [
    f"{name}: no test shows what it does"
    for name, in_effect in KNOWN.items()
    if in_effect and name not in TESTED | AWAITED
]
unknown = [f"{place}: there is no setting {name}" for place, name in MARKS if name not in KNOWN]
settled = [
    f"{name}: {'has its test now' if name in TESTED else 'there is no such setting'}"
    for name in sorted(AWAITED)
    if name in TESTED or name not in KNOWN
]

verdict(
    ("there are settings and keys to look at", [] if len(KNOWN) > 100 else ["too few were found"]),
    ("every setting has a test of what it does", untested),
    ("tests name settings that exist", unknown),
    ("no test is awaited that is there", settled),
)
