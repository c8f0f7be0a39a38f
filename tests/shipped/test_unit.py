# SPDX-License-Identifier: MIT
"""The systemd unit and the manifest for Kubernetes: what they allow is what the agent needs, and it works with no more."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from check import Skipped

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
UNIT = os.path.join(ROOT, "packaging", "systemd", "cuscope-agent.service")
MANIFEST = os.path.join(ROOT, "packaging", "kubernetes", "cuscope-agent.yaml")
PATIENCE = 15


def unit():
    with open(UNIT, encoding="utf-8") as file:
        return re.findall(r"^(\w+)=(.*)$", file.read(), re.M)


def capabilities():
    return [word.removeprefix("CAP_").lower() for key, value in unit() if key == "CapabilityBoundingSet" for word in value.split()]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# Of ProtectSystem, ProtectHome, PrivateTmp, ProtectKernelTunables: the same mounts, where no systemd runs.
SANDBOX = """
mount --bind / / && mount -o remount,bind,ro /
mount -t tmpfs -o ro tmpfs /home; mount -t tmpfs tmpfs /var/tmp
mount --bind /dev/null /proc/kallsyms
for folder in /sys /proc/sys; do mount --bind $folder $folder; mount -o remount,bind,ro $folder; done
exec setpriv --no-new-privs --bounding-set -all,$BOUND "$@"
"""


class Agent:
    """The agent in the sandbox with these capabilities, and a program of another user that it should see."""

    def __init__(self, build, bound, *before):
        self.port = free_port()
        environment = {**os.environ, "BOUND": ",".join("+" + one for one in bound), "LD_LIBRARY_PATH": f"{build}/simnvml"}
        self.process = subprocess.Popen([f"{build}/programs/ownroot", "sh", "-c", SANDBOX, "sh", *before, f"{build}/cuscope", "agent",
                                         "--interval", "500ms", "--listen", f"127.0.0.1:{self.port}"], env=environment, start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def metrics(self):
        """Nothing where its figures are old: who may see no process has none, and strace makes it slow."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            return ""

    def wait(self):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return self.metrics() or "none yet"
            except OSError:
                time.sleep(0.2)
        self.end()
        return ""

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        try:
            return self.process.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.communicate()[1]


def program_of_another_user(build, folder):
    """gpuloop with libraries that nobody but its user may open. In a chroot the agent, in a namespace of its own, would
    find them by no path, with the unit's capabilities: so it has one, too."""
    for part in ("simcuda/libcudart.so.13", "simcuda/push/libcuda.so.1", "programs/gpuloop"):
        shutil.copy(os.path.join(build, part), folder)
    for at in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
        os.chown(at, 12345, 12345)
    os.chmod(folder, 0o700)
    return subprocess.Popen([f"{build}/programs/ownroot", "setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups",
                             f"{folder}/gpuloop", "20", "50"], env={**os.environ, "LD_LIBRARY_PATH": folder}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def sees(build, bound, *before):
    """Whether an agent with these capabilities counts the launches of that program, and sees the GPU."""
    agent = Agent(build, bound, *before)
    if not agent.wait():
        return False
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        program = program_of_another_user(build, folder)
        until = time.monotonic() + 10
        found = False
        while not found and time.monotonic() < until:
            time.sleep(0.5)
            told = agent.metrics() if agent.process.poll() is None else ""
            found = f'pid="{program.pid}"' in told and "\ncuscope_gpus 1" in told
        program.kill()
        program.wait()
    agent.end()
    return found


def need_root():
    if os.geteuid() != 0:
        raise Skipped("tracing needs root")


def test_unit_the_agent_works_with_its_capabilities_and_mounts(build):
    need_root()
    assert sees(build, capabilities())


def test_unit_every_capability_for_tracing_is_needed(build):
    need_root()
    for one in ("bpf", "perfmon", "sys_ptrace", "dac_read_search"):
        assert one in capabilities(), one
    for one in ("sys_ptrace", "dac_read_search"):  # a kernel lets either of the other two stand in for the one that lacks
        assert not sees(build, [other for other in capabilities() if other != one]), f"{one} is not needed"
    assert "sys_admin" not in capabilities()


def doctor(build, bound):
    """Its status, and {what: verdict} of its lines about rights."""
    done = subprocess.run(["setpriv", "--bounding-set", "-all," + ",".join("+" + one for one in bound), f"{build}/cuscope", "doctor"],
                          capture_output=True, text=True, timeout=60, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    return done.returncode, {words[1]: words[0] for words in lines if len(words) > 2 and
                             (words[1].startswith("CAP_") or words[1] in ("privileges", "entering"))}


def test_unit_doctor_agrees_with_its_capabilities(build):
    need_root()
    assert doctor(build, capabilities()) == (0, {"privileges": "ok", "entering": "ok"})
    for one in capabilities():
        required = one in ("bpf", "perfmon")
        status, lines = doctor(build, [other for other in capabilities() if other != one])
        entering = "degraded" if one == "sys_ptrace" else "ok"
        assert (status, lines) == (int(required), {"CAP_" + one.upper(): "missing" if required else "degraded",
                                                   "entering": entering}), (one, status, lines)
    status, lines = doctor(build, ["sys_admin"])
    assert status == 0 and "CAP_BPF" not in lines and "CAP_PERFMON" not in lines, lines


def expand(name):
    done = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    calls = set()
    for line in (line.strip() for line in done.splitlines()[1:]):
        if line and not line.startswith("#"):
            calls |= expand(line) if line.startswith("@") else {line}
    return calls


def test_unit_allows_every_system_call_of_the_agent(build):
    need_root()
    if not shutil.which("systemd-analyze"):
        raise Skipped("systemd-analyze is not installed")
    if os.uname().machine != "x86_64":
        raise Skipped("the filter is of x86-64")
    allowed = set()
    for word in dict(unit())["SystemCallFilter"].split():
        allowed |= expand(word) if word.startswith("@") else {word}
    filtered = os.path.join(ROOT, "tests", "shipped", "filtered.py")
    assert sees(build, capabilities(), "/usr/bin/python3", filtered, ",".join(sorted(allowed)))
    assert not sees(build, capabilities(), "/usr/bin/python3", filtered, ",".join(sorted(allowed - {"perf_event_open", "bpf"})))


def test_unit_has_one_capability_more_on_kernels_before_6_6(build):
    generator = os.path.join(os.path.dirname(UNIT), "cuscope-agent-generator")
    more = {"5.10.0-30-amd64": True, "6.1.0-50-cloud-amd64": True, "6.5": True, "6.6.1": False, "6.18.5": False, "7.0-rc1": False}
    for kernel, wanted in more.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([generator, folder, folder, folder], env=dict(os.environ, CUSCOPE_KERNEL=kernel), check=True)
            made = os.path.join(folder, "cuscope-agent.service.d", "50-kernel.conf")
            assert os.path.exists(made) == wanted, kernel
            if wanted:
                with open(made, encoding="ascii") as file:
                    assert "\nCapabilityBoundingSet=CAP_SYS_ADMIN\n" in file.read()


def test_unit_is_understood_by_systemd(build):
    if not shutil.which("systemd-analyze"):
        raise Skipped("systemd-analyze is not installed")
    with open(UNIT, encoding="utf-8") as file:
        text = file.read().replace("@BIN@/cuscope", f"{build}/cuscope").replace("@ETC@", "/etc")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cuscope-agent.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if "cuscope-agent" in line]
        assert not said, said
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=40", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout.splitlines()[-2:]


def manifest():
    try:
        import yaml
    except ImportError as error:
        raise Skipped("python3-yaml is not installed") from error
    with open(MANIFEST, encoding="utf-8") as file:
        return {one["kind"]: one for one in yaml.safe_load_all(file)}


# Fields of Kubernetes 1.30 that a manifest of a DaemonSet may have: a word that is misspelt is none of them.
FIELDS = {
    "DaemonSet": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {"selector", "updateStrategy", "template"},
    "pod": {"hostPID", "hostNetwork", "dnsPolicy", "automountServiceAccountToken", "priorityClassName", "nodeSelector", "tolerations",
            "terminationGracePeriodSeconds", "containers", "volumes"},
    "container": {"name", "image", "args", "ports", "env", "securityContext", "resources", "livenessProbe", "volumeMounts"},
    "security": {"runAsUser", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities", "seccompProfile", "appArmorProfile"},
    "mount": {"name", "mountPath", "subPath", "readOnly"},
}


def test_manifest_has_fields_that_there_are_and_the_units_rights(build):
    parts = manifest()
    pod = parts["DaemonSet"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    for name, value in (("DaemonSet", parts["DaemonSet"]), ("spec", parts["DaemonSet"]["spec"]), ("pod", pod), ("container", container),
                        ("security", container["securityContext"]), *(("mount", one) for one in container["volumeMounts"])):
        assert set(value) <= FIELDS[name], (name, set(value) - FIELDS[name])
    labels = parts["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert parts["DaemonSet"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert all(one["metadata"].get("namespace", "cuscope") == "cuscope" for one in parts.values())
    assert pod["hostPID"] is True and not pod["automountServiceAccountToken"]
    assert [word.lower() for word in container["securityContext"]["capabilities"]["add"]] == capabilities()
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        assert container["image"] == "cuscope:" + re.search(r"^VERSION := (\S+)", file.read(), re.M)[1]


def test_manifest_settings_are_understood(build):
    """They are refused for their certificate alone, which is not here."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "agent.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(manifest()["ConfigMap"]["data"]["agent.ini"])
        done = subprocess.run([f"{build}/cuscope", "agent", "--config", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode != 0 and "/etc/cuscope/secret/" in done.stderr and "agent.ini:" not in done.stderr, done.stderr
