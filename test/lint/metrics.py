# SPDX-License-Identifier: ISC
"""The page on metrics (doc/metrics.md) has the families of the table, and no others; the dashboard and
the alerts (etc/grafana) ask for nothing else."""

import re

from report import read, verdict

ROW = re.compile(r'\{"(\w+)",\s+METRIC_(\w+),\s+METRIC_(\w+),\s+&metric_\w+,.*?"([^"]*)"\}', re.DOTALL)
LINE = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)

TABLE = {name: (kind.lower(), text) for name, kind, _, text in ROW.findall(read("src/admin/metrics/metric_families.c"))}
PAGE = {name: (kind, text) for name, kind, _, text in LINE.findall(read("doc/metrics.md"))}
SERIES = re.compile(r"\bpg(?:usher|bouncer)_\w+")
TOPIC = re.compile(r"\bSHOW ([A-Z_]+)")


def asked_in_vain(name):
    """Metrics and SHOW commands that a file of etc/grafana names, and that do not exist."""
    text = read(f"etc/grafana/{name}")
    topics = {word.upper() for word in re.findall(r"^SHOW\(show_(\w+)", read("include/admin/show/topics.def"), re.M)}
    for metric in sorted(set(SERIES.findall(text))):
        family = re.sub(r"_(bucket|sum|count)$", "", metric)
        if metric not in TABLE and TABLE.get(family, ("",))[0] != "histogram":
            yield f"{name}: there is no {metric}"
    for topic in sorted(set(TOPIC.findall(text)) - topics):
        yield f"{name}: there is no SHOW {topic}"


verdict(
    ("there are metrics to look at", [] if len(TABLE) > 90 else ["too few were found"]),
    ("every metric is described", sorted(TABLE.keys() - PAGE.keys())),
    ("every metric that is described is there", sorted(PAGE.keys() - TABLE.keys())),
    (
        "type and meaning are the table's",
        [f"{name}: {TABLE[name]}, not {PAGE[name]}" for name in TABLE.keys() & PAGE.keys() if TABLE[name] != PAGE[name]],
    ),
    (
        "dashboard and alerts ask for what there is",
        [*asked_in_vain("pgusher-dashboard.json"), *asked_in_vain("pgusher-alerts.yml")],
    ),
)
