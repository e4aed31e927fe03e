# SPDX-License-Identifier: ISC
"""A real Prometheus that scrapes a daemon every second, and promtool."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import yaml

from support.process import (
    HOST, as_service, drop_folder, free_port, make_folder, own, run, wait_until,
)

FOLDER = os.path.realpath(os.path.join(os.path.dirname(__file__), *[".."] * 4, "etc", "grafana"))
TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "prometheus"))


def sample(name):
    """The text of a file of etc/grafana."""
    with open(os.path.join(FOLDER, name)) as file:
        return file.read()


def promtool(*arguments):
    """Run promtool here, where it can read the tree; returns its output. It must succeed."""
    done = subprocess.run(["promtool", *arguments], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """A Prometheus with the scrape configuration and the alerts of etc/grafana."""

    def __init__(self, target, encrypted, authority, rules):
        """Scrape this port, and another one over TLS with a certificate of this authority's file.
        rules are the texts of further files of rules, by name."""
        self.folder = make_folder("pgusher-prometheus-")
        self.port = free_port()
        self.process = None
        config = yaml.safe_load(sample("prometheus.yml"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        # The lines for TLS are comments of the sample.
        ends = r"^    # (scheme:.*|tls_config:|  ca_file:.*)$"
        with_tls = yaml.safe_load(re.sub(ends, r"    \1", sample("prometheus.yml"), flags=re.MULTILINE))
        (job,), (tls_job,) = config["scrape_configs"], with_tls["scrape_configs"]
        for each, port in ((job, target), (tls_job, encrypted)):
            assert each["static_configs"] == [{"targets": ["127.0.0.1:9127"]}]
            each["static_configs"] = [{"targets": [f"{HOST}:{port}"]}]
        tls_job["job_name"] = "pgusher-tls"
        tls_job["tls_config"]["ca_file"] = self._write("ca.crt", open(authority).read())
        config["scrape_configs"].append(tls_job)
        for name in config["rule_files"]:
            self._write(name, sample(name))
        for name, text in rules.items():
            self._write(name, text)
            config["rule_files"].append(name)
        self.config = self._write("prometheus.yml", yaml.safe_dump(config))

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        own(path)
        return path

    def start(self):
        """Start it and wait until it has scraped twice, so that rates exist."""
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                as_service([
                    shutil.which("prometheus"), f"--config.file={self.config}",
                    f"--storage.tsdb.path={self.folder}/data", "--log.level=warn",
                    f"--web.listen-address={HOST}:{self.port}",
                ]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        wait_until(self._scraped, 60, "two scrapes", interval=0.1)
        return self

    def _scraped(self):
        assert self.process.poll() is None, open(os.path.join(self.folder, "log")).read()
        try:
            return self.query("count_over_time(up[1m]) > 1")
        except (urllib.error.URLError, ConnectionError):
            return None

    def _ask(self, path, **parameters):
        url = f"http://{HOST}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None
            raise

    def query(self, expression):
        """The samples of an instant query: pairs of labels and value."""
        data = self._ask("query", query=expression)
        assert data["resultType"] == "vector", expression
        return [(each["metric"], float(each["value"][1])) for each in data["result"]]

    def numbers(self, expression):
        """The values that are numbers: a quantile of nothing is none."""
        return [value for _, value in self.query(expression) if value == value]

    def alerts(self):
        """The alerts whose expression is true, by name: each waits for its time, or fires."""
        found = {}
        for each in self._ask("alerts")["alerts"]:
            assert each["state"] in ("pending", "firing")
            found.setdefault(each["labels"]["alertname"], []).append(each)
        return found

    def rules(self):
        """Every alert that was read, by name, with its state and health."""
        groups = self._ask("rules", type="alert")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def destroy(self):
        """Stop it and remove its folder."""
        if self.process:
            self.process.kill()
            self.process.wait()
        drop_folder(self.folder)
