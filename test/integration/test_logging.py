# SPDX-License-Identifier: ISC
"""The log: its forms, what repeats, where it goes, and who reads it."""

import json
import re

import pytest

from support.process import wait_until


def read(path):
    with open(path) as file:
        return file.read()


# JSON


def objects(pooler):
    """The lines of the log, each an object."""
    return [json.loads(line) for line in pooler.log().splitlines()]


@pytest.mark.setting("log_format")
def test_json_has_an_object_a_line_with_facts_of_its_own(new_pooler, cluster):
    pooler = new_pooler({"log_format": "json"})
    client = pooler.client()
    port = client.socket.getsockname()[1]
    client.query("SELECT 1")
    handle = pooler.clients()[0]["ptr"]
    client.leave()
    pooler.wait_log('"message":"closing because: client close request')
    pooler.command("KILL main")
    pooler.wait_log('"side":"server".*"message":"closing because: ')
    lines = objects(pooler)
    for line in lines:
        assert list(line)[:3] == ["time", "pid", "level"] and list(line)[-1] == "message"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["pid"] == pooler.process.pid
    (up,) = [line for line in lines if line["message"].startswith("process up: ")]
    assert list(up) == ["time", "pid", "level", "message"] and up["level"] == "LOG"
    (attempt,) = [line for line in lines if "login attempt: db=main" in line["message"]]
    expected = {
        "level": "LOG",
        "side": "client",
        "ptr": handle,
        "database": "main",
        "user": "app",
        "address": "127.0.0.1",
        "port": port,
        "tls": "no",
        "replication": "no",
        "message": "login attempt: db=main user=app tls=no replication=no",
    }
    assert expected.items() <= attempt.items()
    (closing,) = [line for line in lines if line.get("reason") == "client close request"]
    assert closing["ptr"] == handle and closing["age"] == 0
    assert closing["message"] == "closing because: client close request (age=0s)"
    (server,) = [line for line in lines if "new connection to server" in line["message"]]
    assert (server["side"], server["address"], server["port"]) == ("server", "127.0.0.1", cluster.port)


@pytest.mark.setting("log_format")
@pytest.mark.parametrize("how", ["SET", "RELOAD"])
def test_the_format_can_be_changed_while_it_runs(new_pooler, how):
    pooler = new_pooler()
    for word in ("json", "text", "json"):
        if how == "SET":
            pooler.command(f"SET log_format = '{word}'")
        else:
            pooler.settings["log_format"] = word
            pooler.reload()
        pooler.client("alice").leave()
        (line,) = pooler.wait_log("user=alice tls=no")[-1:]
        assert line.startswith("{") == (word == "json")


def test_json_is_utf_8_whatever_peers_say(new_pooler):
    pooler = new_pooler({"log_format": "json", "log_repeats": 0, "verbose": 2})
    names = ['"\\', "\x01\x1b[2J", "J\u00f6rg \U0001f418", "x" * 120, "\udcff\udcc0\udcaf", "a\nb\r\n{}", "\u2028"]
    for name in names:
        raw = pooler.raw()
        data = name.encode("utf-8", "surrogateescape")
        raw.send_startup(data, data)
        raw.read_all()
    pooler.wait_log("login attempt", len(names))
    with open(pooler.log_path, "rb") as file:
        lines = file.read().split(b"\n")
    assert lines.pop() == b""
    users = [json.loads(line.decode("utf-8"))["user"] for line in lines if b"login attempt" in line]
    assert users[:4] == names[:4]
    assert len(users) == len(names)


# What repeats


@pytest.mark.setting("log_repeats")
def test_unknown_users_are_told_a_few_times_a_second(new_pooler):
    pooler = new_pooler({"log_repeats": 2})
    for number in range(40):
        pooler.refused(f"ghost{number}")
    pooler.wait_log("login attempt", 40)
    # What scripts count is told of each.
    assert len(pooler.lines("closing because: ")) == 40
    kinds = ["no such user: ghost", 'pooler error: "trust" authentication failed']
    for kind in kinds:
        told = wait_until(lambda kind=kind: whole_count(pooler, kind, 40), what=f"all of {kind}")
        assert len(told) < 40
    pooler.command("SET log_repeats = 0")
    before = len(pooler.lines(r"\] LOG C-0x\w+: \S+ no such user"))
    for number in range(20):
        pooler.refused(f"other{number}")
    pooler.wait_log(r"\] LOG C-0x\w+: \S+ no such user", before + 20)


def whole_count(pooler, kind, expected):
    """The lines of this kind, once those written and those told of are so many."""
    lines = pooler.lines(re.escape(kind))
    more = [re.search(r"\] \w+ (\d+) more like this \(", line) for line in lines]
    count = sum(int(found.group(1)) if found else 1 for found in more)
    assert count <= expected
    return lines if count == expected else None
