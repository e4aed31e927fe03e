# SPDX-License-Identifier: ISC
"""Libraries that only some configurations need: loaded when needed, and only then."""

import os
import subprocess

import pytest

from support.clients.raw import ServerError
from support.process import as_service
from support.servers.pooler import binary

HBA = "host all all 127.0.0.1/32 ldap ldapserver=127.0.0.1\n"

# A setting, and the library that it needs.
NEEDS = {
    "pam": ({"auth_type": "pam"}, "", "libpam.so"),
    "ldap": ({"auth_type": "ldap", "auth_ldap_options": "ldapserver=127.0.0.1"}, "", "libldap"),
    "hba": ({"auth_type": "hba"}, HBA, "libldap"),
}


def libraries(pooler):
    """The library files that the process has mapped."""
    with open(f"/proc/{pooler.process.pid}/maps") as file:
        return {os.path.basename(line.split()[-1]) for line in file if ".so" in line}


def has(pooler, library):
    return any(name.startswith(library) for name in libraries(pooler))


def soname(library):
    """The name by which the program looks for the library."""
    names = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, env={
        "PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}).stdout.split()  # fmt: skip
    return sorted(n for n in names if n.startswith(library) and n[-1].isdigit())[0]


def name_method(pooler, way):
    settings, rules, library = NEEDS[way]
    pooler.settings |= settings
    if rules:
        pooler.settings["auth_hba_file"] = pooler.write("hba.conf", rules)
    return library


@pytest.fixture(params=NEEDS)
def way(request):
    return request.param


def without(pooler, library):
    """An environment in which that library is a file of nonsense."""
    folder = pooler.path("libraries")
    os.mkdir(folder)
    pooler.write(os.path.join("libraries", soname(library)), "this is no library\n")
    os.chmod(folder, 0o755)
    return {"LD_LIBRARY_PATH": folder}


def test_a_library_that_no_setting_needs_is_not_loaded(pooler):
    assert not has(pooler, "libpam.so")
    assert not has(pooler, "libldap")
    assert not has(pooler, "libgnutls")


def test_a_library_is_loaded_with_the_configuration_that_needs_it(new_pooler, way):
    pooler = new_pooler(start=False)
    library = name_method(pooler, way)
    pooler.write_config()
    pooler.start()
    assert has(pooler, library)


def test_a_library_is_loaded_at_a_reload(pooler, way):
    library = name_method(pooler, way)
    assert not has(pooler, library)
    pooler.reload()
    assert has(pooler, library)


def test_without_its_library_a_configuration_is_refused(new_pooler, way):
    pooler = new_pooler(start=False)
    library = name_method(pooler, way)
    pooler.write_config()
    environment = without(pooler, library)
    method = "ldap" if way == "hba" else way
    words = f"authentication by {method} is not possible here: .*{library}"
    pooler.allow(words)
    assert pooler.run_to_end(environment=environment) == 1
    assert pooler.lines(rf"FATAL {words}")
    done = subprocess.run(
        as_service([binary(), "--check", pooler.config_path]),
        capture_output=True, text=True, timeout=30, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert words.split(":")[0] in done.stdout


def test_without_its_library_a_reload_changes_nothing(new_pooler, way):
    pooler = new_pooler(start=False)
    pooler.write_config()
    library = NEEDS[way][2]
    pooler.start(environment=without(pooler, library))
    before = pooler.setting("auth_type")
    name_method(pooler, way)
    pooler.write_config()
    pooler.allow("is not possible here")
    pooler.allow("config file loading failed")
    with pytest.raises(ServerError):
        pooler.command("RELOAD")
    assert pooler.lines("is not possible here")
    assert pooler.setting("auth_type") == before
    assert pooler.client().value("SELECT 1") == "1"


def test_without_its_library_a_method_cannot_be_set(new_pooler):
    pooler = new_pooler(start=False)
    pooler.write_config()
    pooler.start(environment=without(pooler, "libpam.so"))
    pooler.allow("is not possible here")
    with pytest.raises(ServerError, match="SET failed"):
        pooler.command("SET auth_type = 'pam'")
    assert pooler.lines("ERROR SET auth_type: authentication by pam is not possible here")
    assert pooler.setting("auth_type") != "pam"
