# SPDX-License-Identifier: MIT
"""Names of pods by the kubelet, which here is a server of HTTPS with a certificate and a token of its own."""

import contextlib
import http.server
import json
import os
import re
import ssl
import subprocess
import threading

import checks
from harness import Failure, Skip, wait_until
from identities import ID, UID, Agent, cgroup, program

TOKEN = "a.kubelets-token_1"


class Kubelet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.headers.get("Authorization"))
        if self.server.asked[-1] != f"Bearer {TOKEN}" or self.path != "/pods":
            self.send_error(401)
            return
        self.server.may_answer.wait(20)
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):  # who has enough does not read it all
            self.wfile.write(self.server.answer)

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def kubelet(case, answer):
    """The server, and the section of the configuration that names it."""
    cert, key = case.path("kubelet.crt"), case.path("kubelet.key")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                           "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=node", "-addext",
                           "subjectAltName=IP:127.0.0.1"], capture_output=True, check=False)
    if made.returncode or not os.path.exists("/usr/bin/curl"):
        raise Skip("no openssl or no curl")
    with open(case.path("token"), "w") as file:
        file.write(TOKEN + "\n")
    for path in (cert, case.path("token")):
        os.chmod(path, 0o644)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.answer, server.asked, server.may_answer = answer, [], threading.Event()
    server.may_answer.set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.config = (f"[kubelet]\nurl = https://127.0.0.1:{server.server_port}/pods\ntoken = {case.path('token')}\n"
                     f"ca = {cert}\n")
    os.chmod(case.folder, 0o755)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def pod_list(uid):
    return json.dumps({"kind": "PodList", "items": [{
        "metadata": {"name": "trainer-0", "namespace": "team-a", "uid": uid},
        "status": {"containerStatuses": [{"name": "main", "containerID": f"containerd://{ID}"}]}}]}).encode()


def outcome(agent, word):
    """Waits until that came of asking the kubelet."""
    wait_until(lambda: re.search(rf'cuscope_agent_kubelet_reads_total{{outcome="{word}"}} [1-9]', agent.metrics()), word, 40)


def test_kubelet_names_pod_and_container(case):
    """Its answer wins over what the container says of itself."""
    uid = UID + "21"
    with cgroup(f"/kubepods/burstable/pod{uid}/{ID}") as folder, kubelet(case, pod_list(uid)) as server:
        agent = Agent(case, config=server.config)
        process = program(case, folder=folder, env={"POD_NAME": "a-lie", "POD_NAMESPACE": "kube-system"})
        agent.wait_for(process, pod="trainer-0", namespace="team-a", pod_by="kubelet", container="main", container_id=ID)
        outcome(agent, "read")
        checks.contains("metrics", r"(?m)^cuscope_agent_kubelet_pods 1$", agent.metrics())
        with open(f"/proc/{agent.process.pid}/cmdline") as words:
            checks.contains_not("command line", TOKEN, words.read())
        process.stop()
        checks.equal("status", 0, agent.end())


LOOKS = """import glob, os, sys
for folder in glob.glob("/proc/[0-9]*"):
    try:
        if open(folder + "/comm").read() != "curl\\n":
            continue
        print("seen")
        print(os.pread(os.open(folder + "/fd/0", os.O_RDONLY), 4096, 0))
    except OSError:
        pass
    try:
        os.open(folder + "/mem", os.O_RDWR)
        print("memory")
    except OSError:
        pass
"""


def test_kubelet_token_is_kept_from_nobodys_processes(case):
    """curl has no rights, as other programs of nobody have none; those are not to look into it."""
    with kubelet(case, pod_list(UID + "23")) as server:
        server.may_answer.clear()
        agent = Agent(case, config=server.config)
        wait_until(lambda: server.asked, "the question", 40)
        saw = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", LOOKS],
                             capture_output=True, text=True, check=True).stdout
        checks.equal("what nobody saw", {"seen"}, set(saw.split()))  # other tests have such programs, too
        server.may_answer.set()
        outcome(agent, "read")
        checks.equal("status", 0, agent.end())


def test_kubelet_that_does_not_know_a_pod(case):
    """Then nobody's word is taken, and a pod that is new is asked for again."""
    uid = UID + "22"
    with cgroup(f"/kubepods/burstable/pod{uid}/{ID}") as folder, kubelet(case, b'{"items":[]}') as server:
        agent = Agent(case, config=server.config)
        process = program(case, folder=folder, env={"POD_NAME": "a-lie"})
        labels = agent.wait_for(process, pod_uid=uid)
        checks.equal("pod", None, labels.get("pod"))
        outcome(agent, "read")
        server.answer = pod_list(uid)
        agent.wait_for(process, pod="trainer-0", pod_by="kubelet")
        process.stop()


def check_outcome(case, word, answer=b"{}", change=lambda case, server: server.config, asked=True):
    """What comes of asking; the agent goes on without names."""
    with kubelet(case, answer) as server:
        agent = Agent(case, config=change(case, server))
        outcome(agent, word)
        if bool(server.asked) != asked:
            raise Failure(f"the kubelet was asked {server.asked}")
        agent.wait_for(program(case, env={"RANK": "7"}), rank="7")
        checks.equal("status", 0, agent.end())


def test_kubelet_whose_certificate_is_anothers_gets_no_token(case):
    def other(case, server):
        path = case.path("other.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", case.path("other.key"), "-out", path, "-days", "1", "-subj", "/CN=node", "-addext",
                        "subjectAltName=IP:127.0.0.1"], capture_output=True, check=True)
        return re.sub(r"(?m)^ca = .*", f"ca = {path}", server.config)

    check_outcome(case, "untrusted", change=other, asked=False)


def test_kubelet_that_denies(case):
    def other(case, server):
        with open(case.path("token"), "w") as file:
            file.write("another\n")
        return server.config

    check_outcome(case, "denied", change=other)


def test_kubelet_without_a_token(case):
    def other(case, server):
        os.remove(case.path("token"))
        return server.config

    check_outcome(case, "no_files", change=other, asked=False)


def test_kubelet_that_is_not_there(case):
    check_outcome(case, "unreachable", asked=False,
                  change=lambda case, server: re.sub(r"127.0.0.1:\d+/pods", "127.0.0.1:1/pods", server.config))


def test_kubelet_that_answers_nonsense(case):
    check_outcome(case, "not_understood", answer=b"<html>")


def test_kubelet_whose_answer_has_no_end(case):
    check_outcome(case, "too_long", answer=b" " * (17 << 20))
