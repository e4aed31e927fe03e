# SPDX-License-Identifier: ISC
"""An API server of Kubernetes that stores objects and does nothing with them, for kubectl and helm. A
deployment has its pods, all of them ready, as soon as it is created."""

import copy
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# Group and version, then kind by plural.
RESOURCES = {
    "v1": {
        "namespaces": "Namespace", "configmaps": "ConfigMap", "secrets": "Secret",
        "services": "Service", "pods": "Pod",
    },
    "apps/v1": {"deployments": "Deployment", "replicasets": "ReplicaSet"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
}  # fmt: skip
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
LOG = "what the pod has logged\n"


def root_of(version):
    return f"/api/{version}" if "/" not in version else f"/apis/{version}"


def status(code, reason, message=""):
    return code, {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message or reason,
    }  # fmt: skip


def merge(base, patch):
    """RFC 7396, which is enough for what is patched here."""
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value
    return base


class Store:
    """The objects, by plural, namespace ("" for none) and name."""

    def __init__(self):
        self.objects = {}
        self.version = 0
        self.lock = threading.Lock()

    def put(self, plural, space, made):
        self.version += 1
        meta = made.setdefault("metadata", {})
        if space:
            meta["namespace"] = space
        meta["resourceVersion"] = str(self.version)
        meta.setdefault("uid", f"00000000-0000-0000-0000-{self.version:012}")
        meta.setdefault("creationTimestamp", "2026-11-23T15:04:05Z")
        if plural == "deployments":
            self._roll_out(space, made)
        if plural == "secrets":
            # What is read back is in base 64, as kubectl prints it; tests read stringData.
            made.setdefault("data", {})
        self.objects[plural, space, meta["name"]] = made
        return made

    def _roll_out(self, space, made):
        meta, count = made["metadata"], made["spec"]["replicas"]
        meta["generation"] = meta.get("generation", 0) + 1
        made["status"] = {
            "observedGeneration": meta["generation"], "replicas": count, "updatedReplicas": count,
            "readyReplicas": count, "availableReplicas": count,
            "conditions": [{"type": "Available", "status": "True"}],
        }  # fmt: skip
        template = made["spec"]["template"]
        for number in range(count):
            pod = {
                "apiVersion": "v1", "kind": "Pod", "spec": copy.deepcopy(template["spec"]),
                "metadata": {"name": f"{meta['name']}-{number}", **copy.deepcopy(template["metadata"])},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }  # fmt: skip
            self.put("pods", space, pod)

    def list(self, plural, space, selector="", fields=""):
        wanted = dict(part.split("=", 1) for part in selector.split(",") if "=" in part)
        name = dict(part.split("=", 1) for part in fields.split(",") if part).get("metadata.name")
        for (each, where, _), made in sorted(self.objects.items()):
            labels = made["metadata"].get("labels", {})
            if each == plural and where == space and wanted.items() <= labels.items():
                if name in (None, made["metadata"]["name"]):
                    yield made


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, code, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def discover(self, path):
        if path == "/version":
            return {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            groups = []
            for version in RESOURCES:
                if "/" in version:
                    entry = {"groupVersion": version, "version": version.split("/")[1]}
                    groups.append({"name": version.split("/")[0], "versions": [entry],
                                   "preferredVersion": entry})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        for version, kinds in RESOURCES.items():
            if path == root_of(version):
                return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
                        "resources": [
                            {"name": plural, "singularName": kind.lower(), "kind": kind,
                             "namespaced": kind != "Namespace", "verbs": VERBS}
                            for plural, kind in kinds.items()]}
        if path == "/openapi/v3":
            return {"paths": {}}
        return None

    def place(self, path):
        """Version, plural, namespace, name and what is behind of a path; None: there is none."""
        for version, kinds in RESOURCES.items():
            root = root_of(version) + "/"
            if not path.startswith(root):
                continue
            words = path[len(root):].split("/")
            space = ""
            if words[0] == "namespaces" and len(words) > 2:
                space, words = words[1], words[2:]
            if words[0] in kinds:
                return version, words[0], space, words[1] if len(words) > 1 else None, words[2:]
        return None

    def handle_request(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        body = self.body() if self.command in ("POST", "PUT", "PATCH", "DELETE") else None
        if url.path == "/openapi/v2":
            # An empty document: nothing is known of any object, so none is refused.
            return self.answer(200, b"", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        found = self.discover(url.path)
        if found:
            return self.answer(200, found)
        place = self.place(url.path)
        if not place:
            return self.answer(*status(404, "NotFound"))
        with self.server.store.lock:
            code, made = self.act(*place, query, body)
        if isinstance(made, bytes):
            return self.answer(code, made, "text/plain")
        return self.answer(code, made)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def act(self, version, plural, space, name, behind, query, body):
        store = self.server.store
        key = plural, space, name
        if plural == "pods" and behind == ["log"]:
            return 200, LOG.encode()
        if self.command == "POST":
            if (plural, space, body["metadata"]["name"]) in store.objects:
                return status(409, "AlreadyExists", f"{body['metadata']['name']} already exists")
            if space and ("namespaces", "", space) not in store.objects:
                return status(404, "NotFound", f'namespaces "{space}" not found')
            return 201, store.put(plural, space, body)
        if name is None:
            kind = RESOURCES[version][plural] + "List"
            fit = list(store.list(
                plural, space, query.get("labelSelector", ""), query.get("fieldSelector", "")))
            if query.get("watch") in ("1", "true"):
                lines = [{"type": "MODIFIED", "object": each} for each in fit]
                return 200, b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            return 200, {"kind": kind, "apiVersion": version,
                         "metadata": {"resourceVersion": str(store.version)}, "items": fit}
        if key not in store.objects:
            return status(404, "NotFound", f'{plural} "{name}" not found')
        if self.command == "PUT":
            return 200, store.put(plural, space, body)
        if self.command == "PATCH":
            return 200, store.put(plural, space, merge(copy.deepcopy(store.objects[key]), body))
        if self.command == "DELETE":
            return 200, store.objects.pop(key)
        return 200, store.objects[key]


class KubernetesApi:
    """The running server, and the environment in which kubectl and helm use it."""

    def __init__(self, folder):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.store = Store()
        self.objects = self.server.store.objects
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        path = os.path.join(folder, "kubeconfig")
        with open(path, "w") as file:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": {
                    "server": f"http://127.0.0.1:{self.server.server_port}"}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "users": [{"name": "test", "user": {}}],
            }, file)  # fmt: skip
        os.chmod(path, 0o600)
        self.environment = {**os.environ, "KUBECONFIG": path, "HOME": folder}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
