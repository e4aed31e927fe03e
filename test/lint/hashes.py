# SPDX-License-Identifier: ISC
"""Tables keyed by what clients and servers choose use a keyed hash.

uthash's own hash has no key. Such tables are used with the *_BYHASHVALUE macros and a value of
crypt/keyed_hash; tables of names in the configuration need none.
"""

import re

from report import read, sources, verdict

OWN_HASH = re.compile(r"\bHASH_(?:ADD|FIND|REPLACE)\w*\(")

# Host names are in the configuration, and zones are parts of them.
CONFIGURED = {"src/net/resolver.c", "src/net/dns_zones.c"}


def unkeyed():
    """Where uthash's own hash is used."""
    for path in sources("src", "include"):
        for number, line in enumerate(read(path).splitlines(), 1):
            for found in OWN_HASH.findall(line):
                if "_BYHASHVALUE" not in found and str(path) not in CONFIGURED:
                    yield f"{path}:{number}: {line.strip()}"


verdict(("tables of what peers choose have a keyed hash", list(unkeyed())))
