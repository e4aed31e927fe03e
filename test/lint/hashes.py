# SPDX-License-Identifier: ISC
"""What peers choose is hashed with a key that they do not know.

uthash's own hash has none. Tables are filled and asked by the *_BYHASHVALUE macros, with a value of
crypt/keyed_hash, except where the names are the configuration's.
"""

import re

from report import read, sources, verdict

OWN_HASH = re.compile(r"\bHASH_(?:ADD|FIND|REPLACE)\w*\(")

# Hosts stand in the configuration, and zones are parts of their names.
CONFIGURED = {"src/net/resolver.c", "src/net/dns_zones.c"}


def unkeyed():
    """Where uthash's own hash is used."""
    for path in sources("src", "include"):
        for number, line in enumerate(read(path).splitlines(), 1):
            for found in OWN_HASH.findall(line):
                if "_BYHASHVALUE" not in found and str(path) not in CONFIGURED:
                    yield f"{path}:{number}: {line.strip()}"


verdict(("tables of what peers choose have a keyed hash", list(unkeyed())))
