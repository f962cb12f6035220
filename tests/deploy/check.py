"""Checks of what deploys Warptape. Each check takes a folder laid out like the repository and says what is wrong in it, and each
is tried on copies with mistakes planted in them: a check that finds none there has failed.

Usage: check.py HELM_LIBRARY, from the root of the repository; $PATH has what tests/deploy/run puts there.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import kubernetes_validate
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor
from helm import Helm, HelmError
from pydantic import ValidationError

KUBERNETES_VERSIONS = ("1.28.0", "1.37.0")
# What the definitions of these resources allow, by models that are generated from them.
CUSTOM_RESOURCES = {"keda.sh/v1alpha1": ScaledObject, "monitoring.coreos.com/v1": ServiceMonitor}
# The models take any metadata of a trigger: these are the keys of keda.sh/docs that the chart or its users may give.
TRIGGERS = {
    "kafka": {"bootstrapServers", "consumerGroup", "topic", "lagThreshold", "activationLagThreshold", "offsetResetPolicy",
              "allowIdleConsumers", "excludePersistentLag", "limitToPartitionsWithLag", "version", "tls", "sasl"},
    "prometheus": {"serverAddress", "query", "threshold", "activationThreshold", "namespace", "authModes"},
}
CHART = "deploy/helm/warptape"
PROFILES = ((), ("ha",), ("metrics",), ("verify",), ("gpu",), ("ha", "metrics"), ("ha", "metrics", "verify", "gpu"))
# systemd-analyze rates a unit's exposure from 0 to 100. This one has 14: a program that opens sockets is exposed by that.
EXPOSURE_MAX = 15
SCRIPTS = (".ci/run", "tests/run", "tests/cargo_tests", "tests/crash", "tests/fuzz", "tests/services", "tests/packages.sh", "tests/newcomer.sh", "tests/gpu/build", "tests/gpu/run",
           "tests/deploy/run")
# Tables of fly.toml, and their keys, by fly.io/docs/reference/configuration; None where keys are of the user's own.
FLY = {
    "deploy": {"strategy", "max_unavailable", "release_command", "wait_timeout"},
    "processes": None,
    "files": {"guest_path", "raw_value", "local_path", "secret_name", "processes"},
    "env": None,
    "metrics": {"port", "path", "processes"},
    "checks": {"type", "port", "method", "path", "interval", "timeout", "grace_period", "headers", "processes"},
    "restart": {"policy", "retries", "processes"},
    "vm": {"size", "memory", "cpus", "cpu_kind", "gpus", "gpu_kind", "processes"},
}
FLY_TEXTS = {"app", "primary_region", "kill_signal", "kill_timeout"}


def said(command, **options):
    """What a program prints, if it fails; nothing if it does not."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    return [done.stdout.strip() or f"{command[0]} exits {done.returncode}"] if done.returncode else []


# Checks -------------------------------------------------------------------------------------------------------------


def scripts(root):
    """Scripts of bash, by shellcheck."""
    yield from said(["shellcheck", "--severity=warning", "--external-sources", *SCRIPTS], cwd=root)


def image(root):
    """The Dockerfile, by hadolint, and what Kubernetes and compose rely on."""
    yield from said(["hadolint", "--no-color", str(root / "Dockerfile")])
    stages = re.split(r"^FROM ", (root / "Dockerfile").read_text(), flags=re.M)[1:]
    served = [stage for stage in stages if " AS cpu" in stage.splitlines()[0]]
    if len(served) != 1 or stages[-1].strip() != "cpu":
        yield "the stage that is built by default is not `cpu`"
        return
    if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", served[0], flags=re.M):
        yield "the user is no number other than 0, so runAsNonRoot cannot be checked"
    if not re.search(r'^HEALTHCHECK .*CMD \["warptape", "ready"\]$', served[0], flags=re.M):
        yield "the health check is not `warptape ready`"


def compose(root):
    """docker-compose.yml, by Docker Compose itself, with each set of profiles."""
    for profiles in PROFILES:
        chosen = [argument for profile in profiles for argument in ("--profile", profile)]
        yield from said(["docker-compose", *chosen, "config", "--quiet"], cwd=root)


def metrics(root):
    """Prometheus' configuration by promtool, Grafana's provisioning against the services of docker-compose.yml, and KEDA's query."""
    yield from said(["promtool", "check", "config", str(root / "deploy/prometheus/prometheus.yml")])
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    scraped = yaml.safe_load((root / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    for names in (found["names"] for job in scraped for found in job.get("dns_sd_configs", [])):
        yield from (f"Prometheus scrapes {name}, which is no service" for name in names if name not in services)
    provisioning = root / "deploy/grafana/provisioning"
    for source in yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]:
        if not re.fullmatch(r"http://prometheus:9090", source["url"]) or "prometheus" not in services:
            yield f"the data source {source['name']} is at {source['url']}, where nothing is"
    mounted = {volume.split(":")[1] for volume in services["grafana"]["volumes"]}
    for provider in yaml.safe_load((provisioning / "dashboards/warptape.yml").read_text())["providers"]:
        if provider["options"]["path"] not in mounted:
            yield f"dashboards are looked for in {provider['options']['path']}, which is not mounted"


    # What KEDA asks Prometheus for.
    query = yaml.safe_load((root / CHART / "values.yaml").read_text())["keda"]["prometheus"]["query"]
    there = set(re.findall(r"`(warptape_[a-z0-9_]+)`", (root / "docs/metrics.md").read_text()))
    named = re.findall(r"warptape_[a-z0-9_]+", query)
    if not named:
        yield "KEDA's query names no metric of Warptape"
    yield from (f"KEDA asks for {name}, which is no metric of docs/metrics.md" for name in named if name not in there)


def runbook(root):
    """Alerts name sections of docs/operations.md that are there."""
    lines = (root / "docs/operations.md").read_text().splitlines()
    headings = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    # As GitHub makes them: small letters, hyphens for spaces, nothing else.
    there = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for file in ("deploy/prometheus/warptape.rules.yml", "docs/alerts.md"):
        named = set(re.findall(r"operations\.md#([a-z0-9-]+)", (root / file).read_text()))
        if not named:
            yield f"{file} names no section of docs/operations.md"
        yield from (f"{file} names operations.md#{name}, which is no section" for name in sorted(named - there))


def settings(root):
    """Settings that are given as environment variables exist: warptape.example.toml has all of them."""
    known = set()
    table = ""
    for line in (root / "warptape.example.toml").read_text().splitlines():
        if head := re.fullmatch(r"\[([a-z_.]+)\]", line):
            table = head[1]
        elif key := re.match(r"([a-z_0-9]+) = ", line):
            known.add(f"{table}.{key[1]}")
        known.update(name.lower().replace("__", ".") for name in re.findall(r"variable WARPTAPE__([A-Z_]+?)[, ]", line))
    files = [root / name for name in ("Dockerfile", "docker-compose.yml", "deploy/fly.toml")]
    files += [path for folder in (CHART, "deploy/systemd") for path in (root / folder).rglob("*") if path.is_file()]
    for path in files:
        for name in sorted(set(re.findall(r"WARPTAPE__([A-Z0-9_]+[A-Z0-9])", path.read_text()))):
            setting = re.sub(r"_file$", "", name.lower().replace("__", "."))
            # Properties of librdkafka are its own, and the endpoint's settings are known only to programs that have one.
            if setting == "section.key" or setting.startswith("kafka.properties."):
                continue
            if setting.startswith("endpoint.") and not any(name.startswith("endpoint.") for name in known):
                continue
            if setting not in known:
                yield f"{path.relative_to(root)} sets {setting}, which does not exist"


def chart(root, helm):
    """The chart: linted, rendered for each file in `ci`, and each manifest checked against Kubernetes' schemas."""
    folder = root / CHART
    try:
        outcome = helm.lint(str(folder))
        if "[WARNING]" in outcome or "[ERROR]" in outcome:
            yield outcome
    except HelmError as error:
        yield str(error)
        return
    # Helm leaves hooks out of what it renders, so a copy has what are hooks as parts of the release.
    with tempfile.TemporaryDirectory() as scratch:
        unhooked = pathlib.Path(scratch) / "warptape"
        shutil.copytree(folder, unhooked)
        for template in (unhooked / "templates").glob("*.yaml"):
            template.write_text(re.sub(r"^ *helm\.sh/hook\b.*\n", "", template.read_text(), flags=re.M))
        for values in sorted((folder / "ci").glob("*-values.yaml")):
            name = values.name.removesuffix("-values.yaml")
            try:
                for version in KUBERNETES_VERSIONS:
                    released = manifests(helm.template(str(folder), str(values), version))
                    all_parts = manifests(helm.template(str(unhooked), str(values), version))
                    yield from (f"{name}, {version}: {wrong}" for wrong in valid(all_parts, version))
            except (HelmError, yaml.YAMLError) as error:
                yield f"{name}: {error}"
                return
            yield from (f"{name}: {wrong}" for wrong in related(released, all_parts))


def manifests(text):
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def valid(parts, version):
    for part in parts:
        what = f"{part.get('kind')} {part.get('metadata', {}).get('name')}"
        try:
            if model := CUSTOM_RESOURCES.get(part.get("apiVersion")):
                if part["kind"] != model.__name__:
                    yield f"{what}: no such kind"
                model.model_validate(part, extra="forbid")
            else:
                kubernetes_validate.validate(part, version.rsplit(".", 1)[0], strict=True)
        except (kubernetes_validate.ValidationError, ValidationError) as error:
            yield f"{what}: {error}"
        except kubernetes_validate.SchemaNotFoundError:
            yield f"{what}: Kubernetes {version} has no such kind"


def related(released, all_parts):
    """What schemas do not see: that parts name each other, and what the project promises of a pod."""
    # The verifier's parts have a component of their own.
    by_kind, of_verifier = {}, {}
    for part in released:
        parts = of_verifier if part["metadata"]["name"].endswith("-verifier") else by_kind
        parts[part["kind"]] = part
    yield from verifier(of_verifier, by_kind.get("ServiceMonitor"))
    if any(part["metadata"]["name"].endswith("-topics") for part in released):
        yield "the job that makes topics, or its settings, is no hook"
    stateful = by_kind["StatefulSet"]
    pods = [stateful["spec"]["template"]]
    pods += [part["spec"]["template"] for part in all_parts if part["kind"] in ("Job", "Deployment")]
    labels = pods[0]["metadata"]["labels"]
    selectors = [stateful["spec"]["selector"]["matchLabels"], by_kind["Service"]["spec"]["selector"]]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        if kind in by_kind:
            spec = by_kind[kind]["spec"]
            selectors.append(spec.get("selector", spec.get("podSelector"))["matchLabels"])
    yield from (f"the selector {wanted} does not meet the pods" for wanted in selectors if not wanted.items() <= labels.items())
    if "ServiceMonitor" in by_kind:
        wanted = by_kind["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
        if not wanted.items() <= by_kind["Service"]["metadata"]["labels"].items():
            yield "the ServiceMonitor does not meet the service"
    if "ScaledObject" in by_kind:
        target = by_kind["ScaledObject"]["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) != ("StatefulSet", stateful["metadata"]["name"]):
            yield "KEDA scales something else"
        for trigger in by_kind["ScaledObject"]["spec"]["triggers"]:
            unknown = trigger["metadata"].keys() - TRIGGERS.get(trigger["type"], set())
            yield from (f"KEDA's trigger {trigger['type']} has no {key}" for key in unknown)
        if "replicas" in stateful["spec"]:
            yield "both KEDA and the StatefulSet say how many processes there are"
    elif "replicas" not in stateful["spec"]:
        yield "nobody says how many processes there are"
    if stateful["spec"]["serviceName"] != by_kind["Service"]["metadata"]["name"]:
        yield "the StatefulSet's service is not there"
    if stateful["spec"].get("minReadySeconds", 0) < 10:
        yield "an upgrade goes on before a process has joined its group, which takes up to the session timeout"
    configurations = {part["metadata"]["name"] for part in all_parts if part["kind"] == "ConfigMap"}
    for pod in pods:
        yield from secure(pod["spec"], configurations)
    container = pods[0]["spec"]["containers"][0]
    variables = {variable["name"]: variable for variable in container["env"]}
    if len(variables) != len(container["env"]):
        yield "a variable is given twice"
    index = variables["WARPTAPE__ENGINE__ORDINAL"].get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
    if index != "metadata.labels['apps.kubernetes.io/pod-index']":
        yield "engine.ordinal is not the pod's index"
    for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        if container.get(probe, {}).get("httpGet", {}).get("path") != path:
            yield f"{probe} does not ask {path}"


def verifier(parts, monitor):
    """Of a verifier: that its parts name each other, and that it is scraped as a verifier alone."""
    if not parts:
        return
    pod = parts["Deployment"]["spec"]["template"]
    for selector in (parts["Deployment"]["spec"]["selector"]["matchLabels"], parts["Service"]["spec"]["selector"]):
        if not selector.items() <= pod["metadata"]["labels"].items():
            yield f"the verifier's selector {selector} does not meet its pod"
    container = pod["spec"]["containers"][0]
    if not {"--follow", "--listen"} <= set(container["args"]):
        yield "the verifier does not follow, or tells nobody"
    if "ServiceMonitor" in parts:
        labels = parts["Service"]["metadata"]["labels"].items()
        if not parts["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= labels:
            yield "the verifier's ServiceMonitor does not meet its service"
        if monitor["spec"]["selector"]["matchLabels"].items() <= labels:
            yield "the verifier is scraped as a pipeline as well"
        jobs = [of["replacement"] for of in parts["ServiceMonitor"]["spec"]["endpoints"][0]["relabelings"]]
        if jobs != ["warptape-verifier"]:
            yield "the alerts look for verifiers in the job warptape-verifier"


def secure(spec, configurations):
    if not spec["securityContext"].get("runAsNonRoot") or spec.get("automountServiceAccountToken") is not False:
        yield "a pod may run as root or has a token of the cluster"
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    for volume in spec.get("volumes", []):
        name = volume.get("configMap", {}).get("name")
        if name and name not in configurations:
            yield f"there is no ConfigMap {name}"
    for container in spec["containers"]:
        context = container["securityContext"]
        if not context.get("readOnlyRootFilesystem") or context.get("allowPrivilegeEscalation") is not False:
            yield f"{container['name']} may write its image or gain rights"
        if context.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{container['name']} keeps capabilities"
        mounts = container.get("volumeMounts") or []
        yield from (f"the volume {mount['name']} is not there" for mount in mounts if mount["name"] not in volumes)
        paths = [mount["mountPath"] for mount in mounts]
        for variable in container["env"]:
            value = variable.get("value", "")
            if value.startswith("/etc/warptape/") and not any(value.startswith(path) for path in paths):
                yield f"{variable['name']} names {value}, which is not mounted"


def refused(root, helm):
    """Values that would start and then fail, or do nothing, are refused in words."""
    brokers = {"brokers": "kafka:9092"}
    cases = [
        ({}, "kafka.brokers is not set"),
        ({"kafka": {"brokers": "kafka"}}, "brokers"),
        ({"kafka": {**brokers, "journalPartitions": 2}, "replicas": 3}, "each process needs a partition of the journal"),
        ({"kafka": brokers, "keda": {"enabled": True, "maxReplicas": 17}}, "each process needs a partition of the journal"),
        ({"kafka": {**brokers, "partitions": 1}}, "has nothing to do"),
        ({"kafka": brokers, "keda": {"enabled": True, "minReplicas": 9}}, "minReplicas"),
        ({"kafka": brokers, "keda": {"enabled": True, "prometheus": {"enabled": True}}}, "serverAddress"),
        ({"kafka": {**brokers, "replicationFactor": 1}}, "nothing could be written"),
        ({"kafka": brokers, "devices": "cuda:0"}, "gpu.enabled is false"),
        ({"kafka": brokers, "devices": "gpu"}, "devices"),
        ({"kafka": brokers, "replica": 3}, "replica"),
        ({"kafka": brokers, "gpu": {"resource": "nvidia.com/mig"}}, "resource"),
        ({"kafka": brokers, "secrets": [{"setting": "log.url", "secret": "a", "key": "b"}]}, "setting"),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for number, (values, words) in enumerate(cases):
            path = pathlib.Path(scratch) / f"{number}.yaml"
            path.write_text(yaml.safe_dump(values))
            try:
                helm.template(str(root / CHART), str(path))
                yield f"{values} is not refused"
            except HelmError as error:
                if words not in str(error):
                    yield f"{values} is refused without {words!r}: {error}"


def service(root):
    """The unit of systemd: its keys by `verify`, with a program that exists, and its exposure by `security`."""
    with tempfile.TemporaryDirectory() as scratch:
        unit = pathlib.Path(scratch) / "warptape.service"
        text = (root / "deploy/systemd/warptape.service").read_text()
        unit.write_text(text.replace("/usr/local/bin/warptape", shutil.which("true")))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
        # An unknown key is a warning, and the exit status 0.
        if done.returncode or done.stderr.strip():
            yield done.stderr.strip() or f"systemd-analyze verify exits {done.returncode}"
        rated = ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_MAX}", str(unit)]
        yield from (text.splitlines()[-1] for text in said(rated))


def fly(root):
    """fly.toml: keys that Fly.io's reference has, files and checks that fit the processes."""
    try:
        read = tomllib.loads((root / "deploy/fly.toml").read_text())
    except tomllib.TOMLDecodeError as error:
        yield str(error)
        return
    for name, value in read.items():
        if name not in FLY and name not in FLY_TEXTS:
            yield f"fly.toml has no {name}"
        elif name in FLY and FLY[name] is not None:
            tables = value if isinstance(value, list) else list(value.values()) if name == "checks" else [value]
            yield from (f"fly.toml has no {name}.{key}" for table in tables for key in table if key not in FLY[name])
            used = {process for table in tables for process in table.get("processes", [])}
            yield from (f"{name} is for {process}, which is no process" for process in used - set(read["processes"]))
    written = {file["guest_path"] for file in read["files"]}
    named = [word for command in read["processes"].values() for word in command.split() if word.startswith("/")]
    named += [value for key, value in read["env"].items() if key.endswith("_FILE")]
    yield from (f"{path} is named and not written" for path in named if path not in written)


# Planted mistakes: of each check, a file, what is replaced in it and by what, and a word that the finding has ----------

PLANTED = {
    scripts: [("tests/deploy/run", '/../.." || exit 1', '/../.."', "SC2164")],
    image: [
        ("Dockerfile", "==$NVRTC_VERSION", "", "DL3013"),
        ("Dockerfile", "USER 65532:65532", "USER root", "runAsNonRoot"),
        ("Dockerfile", '"warptape", "ready"', '"curl", "localhost:9464"', "warptape ready"),
        ("Dockerfile", "image that compiles.", "image that compiles.\nRUNS true", "Dockerfile:11"),
    ],
    compose: [
        ("docker-compose.yml", "stop_grace_period", "stop_grace_perod", "stop_grace_perod"),
        ("docker-compose.yml", '"redis:/data"', '"rediss:/data"', "rediss"),
        ("docker-compose.yml", "kafka-2: { condition: service_healthy }", "kafka-2: { condition: healthy }", "condition"),
        ("docker-compose.yml", "profiles: [gpu]\n    image: nvcr", "profiles: [gpu]\n    imag: nvcr", "imag"),
    ],
    metrics: [
        ("deploy/prometheus/prometheus.yml", "scrape_interval", "scrape_intervall", "scrape_intervall"),
        ("deploy/prometheus/prometheus.yml", "warptape-ha,", "warptape-haa,", "warptape-haa"),
        ("deploy/grafana/provisioning/datasources/prometheus.yml", "prometheus:9090", "prometheus:9091", "9091"),
        ("deploy/grafana/provisioning/dashboards/warptape.yml", "grafana/dashboards\n", "grafana/boards\n", "boards"),
        (f"{CHART}/values.yaml", "sum(warptape_lanes_wanted)", "sum(warptape_wanted_lanes)", "warptape_wanted_lanes"),
    ],
    runbook: [
        ("docs/operations.md", "### Lag\n", "### Delay\n", "#lag"),
        ("docs/alerts.md", "operations.md#gpu", "operations.md#gpus", "#gpus"),
    ],
    settings: [
        ("docker-compose.yml", "WARPTAPE__HOT_STATE__URL", "WARPTAPE__HOTSTATE__URL", "hotstate.url"),
        (f"{CHART}/templates/_helpers.tpl", "TOPICS__JOURNAL_PARTITIONS", "TOPICS__JOURNALS", "topics.journals"),
        ("deploy/fly.toml", "WARPTAPE__ENGINE__DEVICES", "WARPTAPE__ENGINE__DEVICE", "engine.device"),
    ],
    chart: [
        (f"{CHART}/Chart.yaml", "version: 0.1.0", "version: one", "version"),
        (f"{CHART}/templates/statefulset.yaml", 'include "warptape.validate"', 'include "nothing"', "nothing"),
        (f"{CHART}/templates/statefulset.yaml", "podManagementPolicy", "podManagmentPolicy", "podManagmentPolicy"),
        (f"{CHART}/templates/statefulset.yaml", "/readyz", "/ready", "/readyz"),
        (f"{CHART}/templates/statefulset.yaml", "minReadySeconds: {{ .Values.minReadySeconds }}", "minReadySeconds: 0", "goes on before"),
        (f"{CHART}/templates/statefulset.yaml", "metadata.labels['apps.kubernetes.io/pod-index']", "metadata.name", "index"),
        (f"{CHART}/templates/topics.yaml", "backoffLimit: 3", "backoffLimit: three", "backoffLimit"),
        (f"{CHART}/templates/topics.yaml", "helm.sh/hook: pre", "helm.sh/hooks: pre", "no hook"),
        (f"{CHART}/templates/keda.yaml", "minReplicaCount", "minReplicasCount", "minReplicasCount"),
        (f"{CHART}/templates/keda.yaml", "lagThreshold:", "lagTreshold:", "lagTreshold"),
        (f"{CHART}/templates/_helpers.tpl", "path: /metrics", "paths: /metrics", "paths"),
        (f"{CHART}/templates/disruption.yaml", "component: engine", "component: engines", "does not meet"),
        (f"{CHART}/templates/network.yaml", "policyTypes", "policyType", "policyType"),
        (f"{CHART}/templates/quota.yaml", "hard:", "hards:", "hards"),
        (f"{CHART}/templates/verifier.yaml", "- --follow", "- --outputs", "does not follow"),
        (f"{CHART}/templates/verifier.yaml", '"job" "warptape-verifier"', '"job" "warptape"', "the job warptape-verifier"),
        (f"{CHART}/templates/service.yaml", "component: engine", "component: verifier", "does not meet"),
        (f"{CHART}/templates/_helpers.tpl", "runAsNonRoot: true", "runAsNonRoot: false", "root"),
        (f"{CHART}/templates/_helpers.tpl", "mountPath: /etc/warptape/secrets", "mountPath: /etc/secrets", "not mounted"),
    ],
    refused: [
        (f"{CHART}/templates/_helpers.tpl", "gt $processes $journals", "gt 0 $journals", "not refused"),
        (f"{CHART}/values.schema.json", '"additionalProperties": false', '"additionalProperties": true', "not refused"),
    ],
    service: [
        ("deploy/systemd/warptape.service", "TimeoutStopSec", "TimeoutStopSecs", "TimeoutStopSecs"),
        ("deploy/systemd/warptape.service", "CapabilityBoundingSet=\n", "", "exposure"),
    ],
    fly: [
        ("deploy/fly.toml", "[metrics]", "[metric]", "metric"),
        ("deploy/fly.toml", 'processes = ["second"]', 'processes = ["third"]', "third"),
        ("deploy/fly.toml", 'guest_path = "/etc/warptape/kafka-password"', 'guest_path = "/etc/password"', "not written"),
    ],
}
COPIED = ("Dockerfile", "docker-compose.yml", "warptape.example.toml", "deploy", "docs", *SCRIPTS)


def main():
    helm = Helm(sys.argv[1])
    print(f"Helm {helm.version()}, Kubernetes {' and '.join(KUBERNETES_VERSIONS)}")
    root = pathlib.Path.cwd()
    failed = 0
    for check, mistakes in PLANTED.items():
        arguments = (helm,) if check in (chart, refused) else ()
        found = list(check(root, *arguments))
        for wrong in found:
            print(f"{check.__name__}: {wrong}")
        if found:
            # What is wrong already would hide what is planted.
            failed += 1
            continue
        unseen = 0
        for mistake in mistakes:
            if wrong := missed(root, check, arguments, mistake):
                print(f"{check.__name__}: {wrong}")
                unseen += 1
        seen = f"{len(mistakes) - unseen} of {len(mistakes)} planted mistakes seen"
        print(f"{check.__name__}: ok, {seen}", flush=True)
        failed += unseen
    sys.exit(failed > 0)


def missed(root, check, arguments, mistake):
    """Says so if the check does not find the mistake, or nothing of it."""
    file, old, new, word = mistake
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        for name in COPIED:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, copy / name)
        text = (copy / file).read_text()
        if old not in text:
            return f"{file} has no {old!r} any more, in which a mistake was planted"
        (copy / file).write_text(text.replace(old, new, 1))
        found = []
        for wrong in check(copy, *arguments):
            found.append(wrong)
            if word in wrong:
                return None
    return f"{new!r} instead of {old!r} in {file} is not found, only {found}"


main()
