# SPDX-License-Identifier: ISC
"""etc/kubernetes: the manifests agree with each other, with the chart and with the program, and pods
that are made as they say find each other, take changed files and drain."""

import configparser
import os
import re
import shlex
import shutil
import signal

import pytest

from support import wire
from support.clients.metrics_page import ask
from support.clients.raw import RawClient, ServerError, cancel
from support.kubelet import Volume
from support.documents import Document
from support.process import free_port, run, wait_until
from support.servers.name_servers import Dnsmasq
from support.servers.pooler import binary

yaml = pytest.importorskip("yaml")

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "etc", "kubernetes")
LABELS = {"app.kubernetes.io/name": "pgusher", "app.kubernetes.io/instance": "pgusher"}
MOUNT = "/etc/pgusher"


def read(name):
    with open(os.path.join(FOLDER, name)) as file:
        return file.read()


def manifests():
    """All objects of the kustomization and the secret, by kind and name."""
    resources = [*yaml.safe_load(read("kustomization.yaml"))["resources"], "secret.yaml"]
    found = {}
    for name in resources:
        for made in yaml.safe_load_all(read(name)):
            key = made["kind"], made["metadata"]["name"]
            assert key not in found
            found[key] = made
    return found


def parse_ini(text):
    """The sections of an ini."""
    parser = configparser.ConfigParser(interpolation=None, delimiters="=", strict=False)
    parser.optionxform = str
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@pytest.fixture(scope="module")
def objects():
    return manifests()


@pytest.fixture(scope="module")
def pod(objects):
    return objects["Deployment", "pgusher"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod):
    (only,) = pod["containers"]
    return only


@pytest.fixture(scope="module")
def ini(objects):
    return objects["ConfigMap", "pgusher"]["data"]["pgusher.ini"]


@pytest.fixture(scope="module")
def settings(ini):
    return parse_ini(ini)["pgusher"]


# --- the manifests ----------------------------------------------------------------------------


def test_every_file_is_in_the_kustomization(objects):
    listed = yaml.safe_load(read("kustomization.yaml"))["resources"]
    present = [name for name in os.listdir(FOLDER) if name.endswith(".yaml")]
    # Not the secret: applied again, it would replace the passwords of a cluster.
    assert sorted(present) == sorted([*listed, "kustomization.yaml", "secret.yaml"])
    assert set(objects) == {
        ("ConfigMap", "pgusher"), ("Secret", "pgusher"), ("Deployment", "pgusher"),
        ("Service", "pgusher"), ("Service", "pgusher-peers"), ("PodDisruptionBudget", "pgusher"),
        ("NetworkPolicy", "pgusher"),
    }  # fmt: skip


def test_labels_and_selectors_mean_the_same_pods(objects, pod):
    for made in objects.values():
        assert made["metadata"]["labels"] == LABELS
    deployment = objects["Deployment", "pgusher"]["spec"]
    selectors = [
        deployment["template"]["metadata"]["labels"],
        deployment["selector"]["matchLabels"],
        objects["Service", "pgusher"]["spec"]["selector"],
        objects["Service", "pgusher-peers"]["spec"]["selector"],
        objects["PodDisruptionBudget", "pgusher"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy", "pgusher"]["spec"]["podSelector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in pod["topologySpreadConstraints"]),
    ]
    assert all(each == LABELS for each in selectors)


def test_ports_agree(objects, container, settings):
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {
        "postgres": int(settings["listen_port"]), "metrics": int(settings["metrics_port"])}
    for name in ("pgusher", "pgusher-peers"):
        (port,) = objects["Service", name]["spec"]["ports"]
        assert port["targetPort"] == "postgres"
    # The addresses of a headless service have the ports of the pods.
    peers = objects["Service", "pgusher-peers"]["spec"]
    assert peers["clusterIP"] == "None" and peers["publishNotReadyAddresses"] is True
    assert peers["ports"][0]["port"] == ports["postgres"]
    assert settings["peers"] == "dns:" + "pgusher-peers"
    policy = objects["NetworkPolicy", "pgusher"]["spec"]

    def opened(direction):
        return [port["port"] for rule in policy[direction] for port in rule["ports"]]

    assert opened("ingress") == [ports["postgres"], ports["metrics"]]
    server = int(re.search(r"port=(\d+)", parse_ini(
        objects["ConfigMap", "pgusher"]["data"]["pgusher.ini"])["databases"]["*"]).group(1))
    assert opened("egress") == [53, 53, server, ports["postgres"]]


def test_the_volume_has_the_files_that_the_configuration_names(objects, pod, container, settings):
    (volume,) = pod["volumes"]
    (mount,) = container["volumeMounts"]
    # A folder: a file mounted by subPath never changes.
    assert mount == {"name": volume["name"], "mountPath": MOUNT, "readOnly": True}
    sources = volume["projected"]["sources"]
    assert [list(each) for each in sources] == [["configMap"], ["secret"]]
    files = {
        f"{MOUNT}/{name}"
        for kind, each in (("ConfigMap", sources[0]["configMap"]), ("Secret", sources[1]["secret"]))
        for name in {**objects[kind, each["name"]].get("data", {}),
                     **objects[kind, each["name"]].get("stringData", {})}
    }  # fmt: skip
    assert files == {container["command"][1], settings["auth_file"]}
    assert container["command"] == ["pgusher", f"{MOUNT}/pgusher.ini"]
    assert settings["watch_config"] == "1"


def test_the_pod_needs_no_rights(pod, container):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    # The group of the volume may read its files.
    assert pod["volumes"][0]["projected"]["defaultMode"] == 0o440
    assert "emptyDir" not in str(pod["volumes"])


def test_times_of_a_shutdown_fit(pod, container, settings):
    delay, timeout = int(settings["drain_delay"]), int(settings["shutdown_timeout"])
    probe = container["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"] < delay
    assert 2 * delay <= timeout < pod["terminationGracePeriodSeconds"]


def test_probes_are_what_the_program_has(container, settings):
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert settings["metrics_listen_addr"] == "*"
    program, option, path = container["startupProbe"]["exec"]["command"]
    assert program == container["command"][0] and path == container["command"][1]
    assert re.search(rf"^ +{option}\b", run([binary(), "--help"]).stdout, re.MULTILINE)


def test_the_configuration_passes_the_check(objects, ini, folder):
    volume = Volume(os.path.join(folder, "etc"), {
        **objects["ConfigMap", "pgusher"]["data"], **objects["Secret", "pgusher"]["stringData"]})
    volume.update({
        "pgusher.ini": ini.replace(MOUNT, volume.path),
        "userlist.txt": objects["Secret", "pgusher"]["stringData"]["userlist.txt"]})
    done = run([binary(), "--check", volume.file("pgusher.ini")], check=False)
    assert (done.returncode, done.stdout) == (0, "")


# --- the chart, without helm ------------------------------------------------------------------


def test_the_values_of_the_chart_are_those_of_the_manifests(objects, pod, container, ini, settings):
    values = yaml.safe_load(read("chart/values.yaml"))
    chart = yaml.safe_load(read("chart/Chart.yaml"))
    assert chart["version"] == chart["appVersion"]
    assert container["image"] == f"{values['image']['repository']}:{chart['appVersion']}"
    assert run([binary(), "--version"]).stdout.split("pgusher ")[1].startswith(chart["appVersion"])
    assert values["replicas"] == objects["Deployment", "pgusher"]["spec"]["replicas"]
    assert values["databases"] == parse_ini(ini)["databases"]
    assert {name: str(value) for name, value in values["settings"].items()}.items() <= settings.items()
    assert str(values["drain"]["delay"]) == settings["drain_delay"]
    assert str(values["drain"]["timeout"]) == settings["shutdown_timeout"]
    assert values["drain"]["timeout"] + 10 == pod["terminationGracePeriodSeconds"]
    assert str(values["metrics"]["port"]) == settings["metrics_port"]
    assert values["resources"] == container["resources"]
    assert values["podSecurityContext"] == pod["securityContext"]
    assert values["securityContext"] == container["securityContext"]
    assert values["topologyKeys"] == [each["topologyKey"] for each in pod["topologySpreadConstraints"]]


def test_every_value_of_the_chart_is_in_its_schema_and_in_a_template():
    schema = yaml.safe_load(read("chart/values.schema.json"))
    folder = os.path.join(FOLDER, "chart", "templates")
    templates = "".join(read(f"chart/templates/{name}") for name in os.listdir(folder))

    def walk(values, part, path):
        for name, value in values.items():
            assert name in part["properties"], f"{path}.{name} is not in the schema"
            inner = part["properties"][name]
            if isinstance(value, dict) and "properties" in inner:
                walk(value, inner, f"{path}.{name}")
                continue
            # As a whole, or by `with` of what it is part of.
            assert re.search(rf"\.{name}\b", templates), f"{path}.{name} is not used"

    walk(yaml.safe_load(read("chart/values.yaml")), schema, ".Values")
    # And the other way round.
    for name in set(re.findall(r"\.Values\.([\w.]+)", templates)):
        values = yaml.safe_load(read("chart/values.yaml"))
        for word in name.split("."):
            assert word in values, name
            values = values[word]


# --- the document -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document():
    return Document("install-kubernetes.md")


def test_the_document_has_the_configuration_of_the_manifests(document, ini):
    shown = parse_ini(document.blocks["shop/pgusher.ini"])
    assert shown["pgusher"] == parse_ini(ini)["pgusher"]
    assert list(shown["databases"]) == ["app"]


def test_the_document_tells_the_times_of_the_manifests(pod, settings):
    with open(os.path.join(FOLDER, "..", "..", "doc", "install-kubernetes.md")) as file:
        rows = [line.split(" | ") for line in file if line.startswith("| ") and line.count("|") == 4]
    times = {row[2].strip(" |`\n"): " ".join(row[:2]) for row in rows}
    delay, timeout = int(settings["drain_delay"]), int(settings["shutdown_timeout"])
    assert f"all goes on for {delay} s" in times["drain_delay"]
    assert times["shutdown_timeout"].startswith(f"| {timeout} s ")
    assert f"| up to {timeout * 4 // 5} s " in "".join(" ".join(row) for row in rows)
    assert times["terminationGracePeriodSeconds"].startswith(
        f"| {pod['terminationGracePeriodSeconds']} s ")


def test_settings_for_poolers_of_operators_exist(document, folder):
    pooler, service = yaml.safe_load_all(document.blocks["cloudnativepg.yaml"])
    (container,) = pooler["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "pgbouncer"
    (variable,) = container["env"]
    assert f"peers=dns:{service['metadata']['name']} " in variable["value"]
    cluster, other = yaml.safe_load_all(document.blocks["pgo.yaml"])
    settings = cluster["spec"]["proxy"]["pgBouncer"]["config"]["global"]
    assert settings["peers"] == f"dns:{other['metadata']['name']}"
    assert all(each["spec"]["clusterIP"] == "None" for each in (service, other))
    assert yaml.safe_load(document.blocks["zalando.yaml"])["configuration"]["connection_pooler"]
    path = os.path.join(folder, "pgbouncer.ini")
    with open(path, "w") as file:
        file.writelines(["[pgbouncer]\nauth_user = x\n", *(f"{name} = {value}\n" for name, value in settings.items())])
    done = run(
        [binary(), "--check", path], env={variable["name"]: variable["value"]}, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# --- pods -------------------------------------------------------------------------------------


class Pods:
    """Pods of the manifests, each with an address of its own and with kubelet's volume."""

    def __init__(self, new_pooler, cluster, objects):
        self.new_pooler = new_pooler
        self.cluster = cluster
        self.objects = objects
        self.port = free_port()
        self.metrics = free_port()
        self.names = Dnsmasq()
        self.pods = []

    def files(self, pod, users, **replaced):
        """What kubelet writes for this pod. In place of a pod's own network it has own addresses."""
        text = self.objects["ConfigMap", "pgusher"]["data"]["pgusher.ini"]
        for old, new in {
            MOUNT: pod.path("etc"),
            "listen_addr = *": f"listen_addr = {pod.place}",  # also metrics_listen_addr
            "listen_port = 6432": f"listen_port = {self.port}",
            "metrics_port = 9127": f"metrics_port = {self.metrics}",
            "host=postgres port=5432": f"host={self.cluster.host} port={self.cluster.port}",
            "dns_max_ttl = 5": f"dns_max_ttl = 1\nresolv_conf = {pod.path('resolv.conf')}",
            **replaced,
        }.items():  # fmt: skip
            assert old in text, old
            text = text.replace(old, new)
        lines = "".join(f'"{name}" "{password}"\n' for name, password in users.items())
        return {"pgusher.ini": text, "userlist.txt": lines}

    def start(self, users):
        pod = self.new_pooler(start=False)
        pod.place = f"127.0.4.{len(self.pods) + 1}"
        # As kubelet writes it for the namespace "shop".
        pod.write("resolv.conf", f"nameserver {self.names.address}\n"
                  "search shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
        pod.volume = Volume(pod.path("etc"), self.files(pod, users))
        pod.config_path = pod.volume.file("pgusher.ini")
        self.pods.append(pod)
        self.names.set({"pgusher-peers.shop.svc.cluster.local": [each.place for each in self.pods]})
        pod.start()
        return pod

    def client(self, pod, user, password, database="main"):
        return pod.keep(RawClient((pod.place, self.port))).login(user, database, password)

    def status(self, pod, page):
        return ask(self.metrics, page, host=pod.place).status


@pytest.fixture
def pods(new_pooler, cluster, objects):
    made = Pods(new_pooler, cluster, objects)
    yield made
    for pod in made.pods:
        # Not by SIGTERM: each would drain.
        pod.close_clients()
        pod.signal(signal.SIGQUIT)
        assert pod.wait_exit() == 0
    made.names.destroy()


USERS = {"scram_login": "scram secret", "admin": "console"}


def test_pods_forward_cancel_requests_to_each_other(pods):
    one, two = pods.start(USERS), pods.start(USERS)
    console = pods.client(two, "admin", "console", "pgbouncer")
    wait_until(lambda: console.query("SHOW PEERS").rows, what="the peer")
    client = pods.client(one, "scram_login", "scram secret")
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: pods.cluster.backends(usename="scram_login", state="active"))
    # The service sends the request to the other pod.
    cancel((two.place, pods.port), client.key)
    assert client.error().sqlstate == "57014"


def test_a_pod_takes_a_changed_config_map_and_secret(pods, objects):
    shipped = re.findall(r'"(\w+)" "(.*)"', objects["Secret", "pgusher"]["stringData"]["userlist.txt"])
    assert shipped == [("app", ""), ("admin", "")]
    pod = pods.start({"scram_login": "", "admin": "console"})
    # As shipped, without passwords, no client comes in.
    with pytest.raises(ServerError) as error:
        pods.client(pod, "scram_login", "")
    assert error.value.sqlstate == "28P01"
    pod.volume.update(pods.files(pod, USERS, **{"default_pool_size = 20": "default_pool_size = 3"}))
    # One volume: both at once.
    pod.wait_log("' and 1 more have changed, re-reading config")
    assert pods.client(pod, "scram_login", "scram secret").value("SELECT 1") == "1"
    console = pods.client(pod, "admin", "console", "pgbouncer")
    (row,) = console.query("SHOW CONFIG WHERE key = 'default_pool_size'").dicts()
    assert row["value"] == "3"


def test_the_console_is_reached_as_the_document_says(pods, document):
    pod = pods.start(USERS)
    block = document.blocks["the console, in another shell than: kubectl -n shop port-forward deployment/pgusher 6432"]
    words = shlex.split(block.splitlines()[1])
    assert words[:5] == ["psql", "-h", "127.0.0.1", "-p", "6432"]
    words[:5] = [shutil.which("psql"), "-X", "-h", pod.place, "-p", str(pods.port)]
    done = run(words, env={**os.environ, "PGPASSWORD": USERS["admin"]})
    assert "cl_waiting" in done.stdout


def test_readiness_is_false_from_the_first_moment_of_a_drain(pods):
    pod = pods.start(USERS)
    assert [pods.status(pod, page) for page in ("/readyz", "/healthz")] == [200, 200]
    stays = pods.client(pod, "scram_login", "scram secret")
    pod.signal(signal.SIGTERM)
    pod.wait_log("got SIGTERM")
    assert [pods.status(pod, page) for page in ("/readyz", "/healthz")] == [503, 200]
    # Until the services have noticed, new clients are served.
    assert pods.client(pod, "scram_login", "scram secret").value("SELECT 1") == "1"
    assert stays.value("SELECT 1") == "1"
