# SPDX-License-Identifier: ISC
"""The Helm chart, and schemas of Kubernetes for all objects: by helm, kubectl and kubectl-validate.

Only with PGUSHER_TEST_PACKAGES=1, since Go builds helm and kubectl-validate at the first time, which
takes minutes. They are kept in $PGUSHER_TEST_KUBERNETES, a folder; by default one of the user's cache."""

import base64
import json
import os
import shutil
import subprocess

import pytest

from support.documents import Document
from support.kubelet import Volume
from support.process import run
from support.servers.kubernetes_api import LOG, KubernetesApi
from support.servers.pooler import binary
from test_kubernetes import FOLDER, MOUNT, manifests, parse_ini

yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.skipif(
    os.environ.get("PGUSHER_TEST_PACKAGES") != "1", reason="only with PGUSHER_TEST_PACKAGES=1"
)

CHART = os.path.join(FOLDER, "chart")
MODULES = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.16.4",
    "kubectl-validate": "sigs.k8s.io/kubectl-validate@v0.0.4",
}
# The oldest and the newest version of Kubernetes whose schemas the validator has.
VERSIONS = ("1.23", "1.30")

# Values that turn everything round at least once.
VALUES = {
    "default": {},
    "other name": {"fullnameOverride": "pooler", "replicas": 1, "peers": {"enabled": False}},
    "tls": {
        "tls": {
            "clients": {"secretName": "front", "mode": "verify-full", "caKey": "ca.crt"},
            "servers": {"mode": "verify-full", "caSecretName": "ca", "caKey": "root.pem"},
        },
        "hba": "hostssl all all all scram-sha-256\nlocal all all peer\n",
    },
    "little": {
        "metrics": {"enabled": False},
        "probes": {"readiness": "tcp", "liveness": "exec", "startup": "tcp"},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "topologyKeys": [],
        "resources": {"limits": None, "requests": None},
    },
    "much": {
        "auth": {"users": {"app": 'a "quoted" password', "admin": "b", "n": "1"}},
        "databases": {"*": None, "a b": "host=one.example", "c": "host=two dbname='it''s'"},
        "users": {"reports": "pool_size=2 pool_mode=session"},
        "settings": {"max_client_conn": 1000000, "query_timeout": 0.5, "log_stats": False,
                     "pool_mode": None, "watch_config": None},
        "extraConfig": "[peers]\n7 = host=192.0.2.1",
        "image": {"tag": "latest", "pullSecrets": [{"name": "registry"}]},
        "service": {"type": "LoadBalancer", "port": 6432, "annotations": {"a": "b"},
                    "loadBalancerSourceRanges": ["192.0.2.0/24"]},
        "metrics": {"podAnnotations": {"prometheus.io/scrape": "true"}},
        "podAnnotations": {"c": "d"}, "podLabels": {"e": "f"}, "nodeSelector": {"g": "h"},
        "tolerations": [{"key": "pooler", "operator": "Exists"}], "priorityClassName": "high",
        "affinity": {"nodeAffinity": {}},
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def tools():
    """The paths of helm and kubectl-validate."""
    cache = os.path.join(os.path.expanduser("~"), ".cache", "pgusher", "kubernetes")
    folder = os.environ.get("PGUSHER_TEST_KUBERNETES", cache)
    found = {}
    for name, module in MODULES.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            if not shutil.which("go"):
                pytest.skip(f"neither {name} nor Go to build it with")
            os.makedirs(folder, exist_ok=True)
            subprocess.run(
                ["go", "install", module], check=True, env={**os.environ, "GOBIN": folder})
        found[name] = path
    return found


def helm(tools, *arguments, check=True, **options):
    return subprocess.run(
        [tools["helm"], *arguments], capture_output=True, text=True, check=check, **options)


def render(tools, values=None, name="pgusher", **options):
    """The output of `helm template`. helm assumes a version of Kubernetes from 2020 otherwise."""
    return helm(
        tools, "template", "--kube-version=1.30.0", name, CHART, "--values=-",
        input=json.dumps(values or {}), **options)


def by_name(text):
    made = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in made}


def validate(tools, *paths, version=VERSIONS[-1]):
    done = subprocess.run(
        [tools["kubectl-validate"], f"--version={version}", *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_fit_the_schemas(tools, version):
    names = yaml.safe_load(open(os.path.join(FOLDER, "kustomization.yaml")))["resources"]
    paths = [os.path.join(FOLDER, name) for name in [*names, "secret.yaml"]]
    validate(tools, *paths, version=version)


def test_the_validator_finds_mistakes(tools, tmp_path):
    text = open(os.path.join(FOLDER, "deployment.yaml")).read()
    wrong = tmp_path / "deployment.yaml"
    wrong.write_text(text.replace("automountServiceAccountToken", "autoMountServiceAccountToken"))
    with pytest.raises(AssertionError):
        validate(tools, str(wrong))


def test_the_kustomization_has_all_objects():
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl")
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = manifests()
    del written["Secret", "pgusher"]
    assert by_name(done.stdout) == written


def test_helm_finds_no_fault(tools):
    done = helm(tools, "lint", "--strict", CHART)
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout


def test_the_chart_makes_the_objects_of_the_manifests(tools):
    rendered, written = by_name(render(tools).stdout), manifests()
    # The chart has no sample for a secret; the manifests have one without passwords.
    assert set(rendered) == set(written) - {("Secret", "pgusher")}
    for key, made in rendered.items():
        labels = made["metadata"]["labels"]
        for name in ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"):
            del labels[name]
    ours = rendered["ConfigMap", "pgusher"]["data"].pop("pgusher.ini")
    theirs = written["ConfigMap", "pgusher"]["data"].pop("pgusher.ini")
    sections = parse_ini(ours)
    # What is said of servers' TLS is the default.
    assert sections["pgusher"].pop("server_tls_sslmode") == "prefer"
    assert sections == parse_ini(theirs)
    (container,) = rendered["Deployment", "pgusher"]["spec"]["template"]["spec"]["containers"]
    assert container.pop("imagePullPolicy") == "IfNotPresent"
    for key, made in rendered.items():
        assert made == written[key]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_what_the_chart_makes_is_valid(tools, values, folder, tmp_path):
    text = render(tools, values, name="shop").stdout
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    for version in VERSIONS:
        validate(tools, str(path), version=version)
    objects = by_name(text)
    files = {}
    for (kind, _), made in objects.items():
        if kind in ("ConfigMap", "Secret"):
            files.update({**made.get("data", {}), **made.get("stringData", {})})
    files.setdefault("userlist.txt", "")
    volume = Volume(os.path.join(folder, "etc"), files)
    files["pgusher.ini"] = "\n".join(
        line for line in files["pgusher.ini"].replace(MOUNT, volume.path).splitlines()
        # Certificates come from secrets that are not the chart's.
        if "_tls_" not in line)
    volume.update(files)
    done = run([binary(), "--check", volume.file("pgusher.ini")], check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_values_reach_the_configuration(tools):
    objects = by_name(render(tools, VALUES["much"], name="shop").stdout)
    ini = parse_ini(objects["ConfigMap", "shop-pgusher"]["data"]["pgusher.ini"])
    assert ini["databases"] == {"'a b'": "host=one.example", "c": "host=two dbname='it''s'"}
    assert ini["users"] == {"reports": "pool_size=2 pool_mode=session"}
    assert ini["peers"] == {"7": "host=192.0.2.1"}
    settings = ini["pgusher"]
    assert (settings["max_client_conn"], settings["query_timeout"]) == ("1000000", "0.5")
    assert settings["log_stats"] == "0"
    assert not {"pool_mode", "watch_config"} & set(settings)
    assert settings["peers"] == "dns:shop-pgusher-peers"
    secret = objects["Secret", "shop-pgusher"]["stringData"]["userlist.txt"]
    assert '"app" "a ""quoted"" password"' in secret.splitlines()
    pod = objects["Deployment", "shop-pgusher"]["spec"]["template"]
    assert pod["metadata"]["annotations"] == {"c": "d", "prometheus.io/scrape": "true"}
    assert set(pod["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile"}


@pytest.mark.parametrize(
    "values, complaint",
    [
        ({"replica": 3}, "Additional property replica is not allowed"),
        ({"settings": {"Pool Mode": "x"}}, "settings"),
        ({"service": {"port": 0}}, "service.port"),
        ({"metrics": {"enabled": False}}, "http probes need metrics.enabled"),
        ({"settings": {"pool_mode": "session\nadmin_users = app"}}, "has no line feed"),
        ({"databases": {"it's": "host=x"}}, "has no quote"),
        ({"auth": {"users": {"a": "b\n\"c\" \"d\""}}}, "auth.users.a"),
        ({"auth": {"users": {"a": "b"}, "existingSecret": "c"}}, "exclude each other"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(tools, values, complaint):
    done = render(tools, values, check=False)
    assert done.returncode != 0 and complaint in done.stderr


# --- the commands of the document -------------------------------------------------------------


class Operator:
    """A shell beside the source of pgusher, with kubectl, helm and a cluster that only stores."""

    def __init__(self, tools, api, folder):
        self.api = api
        self.folder = folder
        self.document = Document("install-kubernetes.md")
        self.path = os.pathsep.join([os.path.dirname(tools["helm"]), os.environ["PATH"]])
        os.symlink(os.path.join(os.path.abspath(FOLDER), "..", ".."), os.path.join(folder, "pgusher"))
        os.mkdir(os.path.join(folder, "shop"))
        for name in ("shop/pgusher.ini", "shop/kustomization.yaml", "shop/values.yaml"):
            self.write(name, self.document.blocks[name])
        users = self.document.blocks["userlist.txt, without this line"]
        self.write("shop/userlist.txt", users.split("\n", 1)[1])

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def type(self, name):
        """Run a block of the document."""
        return self.run(self.document.blocks[name])

    def run(self, text):
        done = subprocess.run(
            ["sh", "-eu", "-c", text], cwd=self.folder, capture_output=True, text=True, timeout=120,
            env={**self.api.environment, "PATH": self.path})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def operator(tools, tmp_path):
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl")
    api = KubernetesApi(str(tmp_path))
    yield Operator(tools, api, str(tmp_path))
    api.stop()


def deployed(operator):
    """What is in the cluster, beside what helm keeps for itself."""
    objects = operator.api.objects
    (container,) = objects["deployments", "shop", "pgusher"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/pgusher:0.1.0"
    secret = objects["secrets", "shop", "pgusher"]["data"]["userlist.txt"]
    with open(os.path.join(operator.folder, "shop", "userlist.txt"), "rb") as file:
        assert base64.b64decode(secret) == file.read()
    names = {key[0] for key in objects if key[2].startswith("pgusher")}
    assert names == {"configmaps", "secrets", "deployments", "services", "pods",
                     "poddisruptionbudgets", "networkpolicies"}
    return objects["configmaps", "shop", "pgusher"]["data"]["pgusher.ini"]


def test_the_commands_with_kubectl_deploy_it(operator):
    printed = operator.type("with kubectl")
    assert 'deployment "pgusher" successfully rolled out' in printed
    assert deployed(operator) == operator.document.blocks["shop/pgusher.ini"]
    assert operator.type("what became of a change").count(LOG) == 2
    # A change, and an update of everything, leave the passwords.
    operator.write("shop/pgusher.ini", "[pgusher]\n")
    assert "configmap/pgusher configured" in operator.run("kubectl apply -k shop")
    assert deployed(operator) == "[pgusher]\n"
    assert "restarted" in operator.run("kubectl -n shop rollout restart deployment pgusher")


def test_the_commands_with_helm_deploy_it(operator):
    printed = operator.type("with helm")
    assert "host=pgusher.shop port=5432" in printed
    assert 'deployment "pgusher" successfully rolled out' in printed
    ini = parse_ini(deployed(operator))
    assert ini["databases"] == {"app": "host=postgres.shop.svc.cluster.local port=5432"}
    assert ini["pgusher"]["default_pool_size"] == "10"
    assert operator.type("what became of a change").count(LOG) == 2
