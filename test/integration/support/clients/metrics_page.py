# SPDX-License-Identifier: ISC
"""Requests to the metrics endpoint. Prometheus' own parser reads the answers."""

import contextlib
import http.client

from support.process import HOST, wait_until

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class Answer:
    """An HTTP response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = dict(response.getheaders())
        self.text = response.read().decode()


def ask(port, path="/metrics", method="GET", host=HOST, timeout=10, **headers):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def labels_of(**labels):
    """The labels in the key of a sample."""
    return tuple(sorted(labels.items()))


class Page:
    """A parsed page of metrics."""

    def __init__(self, text, is_open=False):
        if is_open:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
        else:
            from prometheus_client.parser import text_string_to_metric_families as read
        self.text = text
        self.types = {}
        self.values = {}
        for family in read(text):
            assert family.documentation, f"{family.name} has no help"
            assert family.name not in self.types, f"{family.name} stands twice"
            self.types[family.name] = family.type
            for sample in family.samples:
                key = (sample.name, labels_of(**sample.labels))
                assert key not in self.values, f"{key} stands twice"
                assert sample.value == sample.value, f"{key} is no number"
                self.values[key] = sample.value

    def value(self, name, /, **labels):
        """The value of one sample."""
        return self.values[name, labels_of(**labels)]

    def get(self, name, /, **labels):
        """The value of one sample; None if there is none."""
        return self.values.get((name, labels_of(**labels)))

    def series(self, name):
        """All samples of a name: their labels, as dicts, and values."""
        return [(dict(labels), value) for (known, labels), value in self.values.items() if known == name]

    def total(self, name, /, **labels):
        """The sum of the samples of a name that have these labels."""
        return sum(value for has, value in self.series(name) if labels.items() <= has.items())

    def names(self):
        """Every name of a sample."""
        return {name for name, _ in self.values}


def scrape(port, is_open=False):
    """The page of metrics."""
    answer = ask(port, Accept=OPEN_METRICS if is_open else "*/*")
    assert answer.status == 200, answer.text
    return Page(answer.text, is_open)


def scrape_in_time(port):
    """After a takeover: the old process closes the port, and the new one opens it a moment later."""

    def try_it():
        with contextlib.suppress(ConnectionRefusedError):
            return scrape(port)

    return wait_until(try_it)
