# SPDX-License-Identifier: MIT
"""The node agent's page: the account of the last ten seconds, of what is recorded anyway or while somebody looks."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until
from node import Node, free_port
from test_top_web import names_the_sleep, start_planted

AGENT = "[agent]\nage = 0\ninterval = 200ms\ntop = 200\n"
WORD = "correct-horse-battery"
LOOK = {"Cuscope-Look": "1"}


class Watched:
    """An agent whose page somebody looks at, as a browser does: each second."""

    def __init__(self, case, settings, options=(), headers=()):
        self.node, self.headers, self.id = Node(case, AGENT + settings, options), {**LOOK, **dict(headers)}, ""
        self.pid = self.node.process.pid
        self.of, self.why = {}, None

    def look(self):
        """What the agent's account is made of, and the account; None: there is none."""
        status, headers, text = self.node.get("/live", headers={**self.headers, **({"Last-Event-ID": self.id} if self.id else {})})
        checks.equal("status of /live", (200, "text/event-stream"), (status, headers["Content-Type"]))
        came, number = None, self.id
        for event in text.split("\n\n"):
            fields = dict(line.partition(": ")[::2] for line in event.splitlines())
            number = fields.get("id", number)
            if fields.get("event") == "why":
                came = json.loads(fields["data"])
            elif "data" in fields:
                self.of = json.loads(fields["data"])
        if came or number != self.id:
            self.why = came
        self.id = number
        return self.of, self.why

    def account(self, state="answer", seconds=60, after=0):
        def there():
            time.sleep(0.5)
            why = self.look()[1]
            return why if why and why["state"] == state and why.get("until_ns", 0) >= after else None
        return wait_until(there, f"an account that is {state}", seconds) or self.why

    def children(self, name):
        return subprocess.run(["pgrep", "-x", "-P", str(self.pid), name], capture_output=True, text=True).stdout.split()


def recorder(case):
    folder = case.path("spool")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return f"[recorder]\nenabled = yes\n[spool]\ndirectory = {folder}\nkeep_free = 0\n"


def whole(case, more=""):
    token = case.path("token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(WORD + "\n")
    return Watched(case, f"[tls]\ntoken = {token}\n[account]\nenabled = yes\n{more}", headers={"Authorization": f"Bearer {WORD}"})


def account_of(why, pid):
    return next((gpu for gpu in why["why"]["gpus"] if gpu["pid"] == pid), None)


@alone
def test_agent_account_of_the_calls_that_are_held(case):
    """What is not known has its share, and what would tell it is said; of all processes."""
    first, second = start_planted(case, "sleep", 90), start_planted(case, "prep", 90)
    agent = Watched(case, recorder(case))
    agent.account("recording")
    why = agent.account()
    checks.equal("made of", {"account": "calls", "processes": []}, agent.of)
    for pid in (first.pid, second.pid):
        gpu = account_of(why, pid)
        checks.equal("all of it", 1000, round(sum(10 * line["percent"] for line in gpu["account"])))
        checks.equal("most of it", "host", gpu["account"][0]["cause"])
        if gpu["account"][0]["percent"] < 50:
            raise Failure(f"of calls alone: {gpu['account']}")
    checks.equal("GPU times", "none", why["why"]["gpu_times"])
    checks.equal("no advice", None, why["why"]["first"])
    checks.contains("not known", "GPU times were not recorded", " ".join(why["why"]["not_known"]))
    checks.contains("not known", "what the host did outside of CUDA", why["text"])
    checks.equal("left out", [], why["left_out"])
    agent.account(after=why["until_ns"] + 1)


@alone
def test_agent_account_is_made_for_who_looks_alone(case):
    agent = Watched(case, recorder(case))
    start_planted(case, "sleep", 90)
    agent.account()
    time.sleep(12)  # it goes on for ten seconds
    for _ in range(24):
        time.sleep(0.5)
        checks.equal("who answers", "", subprocess.run(["pgrep", "-x", "cuscope-why"], capture_output=True, text=True).stdout)
    agent.id = ""
    checks.equal("none of long ago", None, agent.look()[1])
    agent.account("recording")
    agent.account()


@alone
def test_agent_account_of_what_why_records(case):
    """The cause and its line; recorded while somebody looks, and by nobody then."""
    agent = whole(case)
    agent.account("recording")
    planted = start_planted(case, "sleep", 150)
    why = agent.account()
    names_the_sleep(why)
    checks.equal("made of", ("whole", [{"pid": planted.pid, "name": "planted"}]), (agent.of["account"], agent.of["processes"]))
    checks.equal("one records", 1, len(agent.children("cuscope-account")))
    wait_until(lambda: not agent.children("cuscope-account"), "its end", 30)
    agent.id = ""
    wait_until(lambda: agent.look()[0]["account"] == "whole" and not agent.why, "no account", 5)
    names_the_sleep(agent.account())


@alone
def test_agent_account_is_of_the_busiest(case):
    """As many as `processes` says; another one when that has ended."""
    idle, busy = start_planted(case, "sleep", 150), case.program("loop", 90, 5000, stdin=subprocess.PIPE)
    agent = whole(case, "processes = 1\n")
    agent.account()
    checks.equal("busiest", [busy.pid], [its["pid"] for its in agent.of["processes"]])
    checks.equal("the account is of", {busy.pid}, {gpu["pid"] for gpu in agent.why["why"]["gpus"]})
    busy.process.kill()
    wait_until(lambda: agent.look()[0]["processes"] not in ([], [{"pid": busy.pid, "name": "loop"}]), "another one", 90)
    if idle.pid in {its["pid"] for its in agent.of["processes"]}:  # else something else runs on this machine
        names_the_sleep(agent.account())


@alone
def test_agent_account_begins_anew(case):
    """Where who makes it is killed or stopped; figures go on."""
    agent = whole(case)
    start_planted(case, "sleep", 150)
    agent.account("recording")
    wait_until(lambda: agent.look() and agent.children("cuscope-account"), "who makes it", 30)
    os.kill(int(agent.children("cuscope-account")[0]), signal.SIGKILL)
    checks.contains("told", "it begins anew", agent.account("failed")["sentence"])
    checks.equal("figures", 200, agent.node.get("/healthz")[0])
    names_the_sleep(agent.account())
    records = agent.children("cuscope-account")[0]
    agent.node.process.process.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{records}"), "its end", 15)


def test_agent_account_wants_the_token(case):
    """At its start, and of who looks: as a browser and as a program send it."""
    agent = whole(case)
    agent.node.write("[account]\nenabled = yes\n")
    refused = subprocess.run([Places.cuscope(), "agent", "--listen", f"127.0.0.1:{free_port()}", "--config", agent.node.config], capture_output=True, text=True, timeout=20)
    checks.equal("status", 1, refused.returncode)
    checks.contains("why", "needs the token", refused.stderr)
    basic = {"Authorization": "Basic " + base64.b64encode(f"anybody:{WORD}".encode()).decode()}
    checks.equal("without", 401, agent.node.get("/live", headers=LOOK)[0])
    checks.equal("a password", 200, agent.node.get("/live", headers={**LOOK, **basic})[0])
    checks.equal("another", 401, agent.node.get("/live", headers={**LOOK, "Authorization": "Bearer x" + WORD})[0])


@alone
def test_agent_account_is_begun_by_no_other_site(case):
    """A browser sends passwords along with what pages of other sites ask for, but no header of theirs without leave."""
    agent = whole(case)
    start_planted(case, "sleep", 60)
    wait_until(lambda: "planted" in agent.node.get("/metrics", headers=agent.headers)[2], "its figures", 20)
    token = {"Authorization": f"Bearer {WORD}"}
    for _ in range(8):
        checks.equal("without the header", 403, agent.node.get("/live", headers=token)[0])
        time.sleep(0.5)
    checks.equal("nobody is entered", [], agent.children("cuscope-account"))
    asked = agent.node.get("/live", "OPTIONS", {"Origin": "http://evil.example", "Access-Control-Request-Headers": "cuscope-look", **token})
    checks.equal("no leave", (405, None), (asked[0], asked[1]["Access-Control-Allow-Headers"]))


def test_agent_without_a_recorder_has_no_account(case):
    agent = Watched(case, "")
    wait_until(lambda: agent.look()[0], "what the account is made of")
    time.sleep(2)
    checks.equal("none", ({"account": "none", "processes": []}, None), agent.look())
    checks.equal("another name", 421, agent.node.get("/live", headers={**LOOK, "Host": "evil.example"})[0])


@alone
def test_agent_account_is_denied_by_no_process(case):
    """One that a user gives the path of valgrind's is passed over, and so is what has ended: the others have theirs."""
    planted = start_planted(case, "sleep", 150)
    os.mkdir(case.path("valgrind"))
    liar = case.start(shutil.copy(Places.program("loop"), case.path("liar")), "90", "5000", stdin=subprocess.PIPE)
    agent = whole(case)
    wait_until(lambda: f'pid="{liar.pid}"' in agent.node.get("/metrics", headers=agent.headers)[2], "its figures", 20)
    os.rename(case.path("liar"), case.path("valgrind/memcheck-amd64-linux"))
    names_the_sleep(agent.account())
    of = {its["pid"] for its in agent.of["processes"]}  # others may run on this machine
    checks.equal("made of", (True, False), (planted.pid in of, liar.pid in of))
