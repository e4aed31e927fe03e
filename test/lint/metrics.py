# SPDX-License-Identifier: ISC
"""The page on metrics (doc/metrics.md) has the families of the table, and no others."""

import re

from report import read, verdict

ROW = re.compile(r'\{"(\w+)",\s+METRIC_(\w+),\s+METRIC_(\w+),\s+&metric_\w+,.*?"([^"]*)"\}', re.DOTALL)
LINE = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)

TABLE = {name: (kind.lower(), text) for name, kind, _, text in ROW.findall(read("src/admin/metrics/metric_families.c"))}
PAGE = {name: (kind, text) for name, kind, _, text in LINE.findall(read("doc/metrics.md"))}

verdict(
    ("there are metrics to look at", [] if len(TABLE) > 90 else ["too few were found"]),
    ("every metric is described", sorted(TABLE.keys() - PAGE.keys())),
    ("every metric that is described is there", sorted(PAGE.keys() - TABLE.keys())),
    (
        "type and meaning are the table's",
        [f"{name}: {TABLE[name]}, not {PAGE[name]}" for name in TABLE.keys() & PAGE.keys() if TABLE[name] != PAGE[name]],
    ),
)
