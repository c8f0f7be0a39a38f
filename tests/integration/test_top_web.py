# SPDX-License-Identifier: MIT
"""cuscope top --web: what a browser asks for, who may, and what nobody can make it do."""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until
from node import free_port


class Web:
    """One that has begun to trace: its first page is there. `password`: what it is told."""

    def __init__(self, case, *options, name="web", password=None):
        self.port, self.headers = free_port(), {"Authorization": f"Bearer {password}"} if password else {}
        self.process = case.start(Places.cuscope(), "top", f"--web=127.0.0.1:{self.port}", "--interval", "200ms", *options, name=name)
        wait_until(self.begun, "the first page")

    def begun(self):
        if self.process.process.poll() is not None:
            raise Failure(f"it ended: {self.process.err()}")
        try:
            return (self.event(**self.headers) or {}).get("counting_ns", 0) > 200e6  # the loop turns
        except OSError:
            return False

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def events(self, **headers):
        """{name: what it has} of those that come at once."""
        status, told, text = self.ask("/live", **headers)
        checks.equal("status of /live", 200, status)
        checks.equal("type", "text/event-stream", told["Content-Type"])
        if not text.endswith("\n\n") or not text.startswith("retry: "):
            raise Failure(f"no event: {text[:80]!r} ... {text[-20:]!r}")
        found = {}
        for event in text.split("\n\n"):
            fields = [line.partition(": ")[::2] for line in event.splitlines()]
            data = [value for name, value in fields if name == "data"]
            if data:
                found[dict(fields).get("event", "message")] = json.loads("\n".join(data))
        return found

    def event(self, **headers):
        """The page that an event has; None before there is one."""
        return self.events(**headers).get("message")

    def account(self, state="answer", seconds=40, after=0):
        """The account of ten seconds that end later than that, or another state."""
        seen = []

        def look():
            seen[:] = [self.events().get("why", {})]
            return seen[0].get("state") == state and seen[0].get("until_ns", 1) > after
        wait_until(look, f"the account: {state}", seconds)
        return seen[0]

    def end(self, status=0):
        self.process.process.send_signal(signal.SIGINT)
        checks.equal("status", status, self.process.process.wait(20))


def start_loop(case):
    process = case.program("loop", 60, 200, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


def test_top_web_tells_each_second_what_top_shows(case):
    loop = start_loop(case)
    web = Web(case, "-p", str(loop.pid))
    wait_until(lambda: (web.event() or {}).get("total", {}).get("calls", 0) > 20, "calls")
    page = web.event()
    checks.equal("process", [loop.pid], [process["pid"] for process in page["processes"]])
    checks.equal("functions of it", True, bool(page["processes"][0]["functions"]))
    later = []
    wait_until(lambda: later.append(web.event()) or later[-1]["total"]["calls"] > page["total"]["calls"], "more calls")
    checks.equal("complete", True, later[-1]["missed"]["complete"])
    web.end()


def test_top_web_serves_a_page_that_runs_its_own_script_alone(case):
    web = Web(case, "--name", "nobody")
    status, headers, text = web.ask("/")
    checks.equal("status", 200, status)
    checks.equal("it is one", True, text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>"))
    for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "script-src 'sha256-"):
        checks.contains("policy", part, headers["Content-Security-Policy"])
    checks.equal("no other site's", "same-origin", headers["Cross-Origin-Resource-Policy"])
    checks.equal("nothing else", 404, web.ask("/metrics")[0])
    web.end()


def test_top_web_does_nothing_for_other_sites(case):
    """A name that leads here is another site's; nothing is taken but questions."""
    web = Web(case, "--name", "nobody")
    checks.equal("another name", 421, web.ask("/live", Host="evil.example")[0])
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        checks.equal(method, 405, web.ask("/live", method)[0])
    _, headers, _ = web.ask("/live", Origin="http://evil.example")
    checks.equal("no leave to read", None, headers.get("Access-Control-Allow-Origin"))
    web.end()


def test_top_web_makes_figures_for_readers_alone(case):
    """Three seconds after the last one asked none are made; the next one gets some at once."""
    web = Web(case, "--name", "nobody")
    first = number(web)
    time.sleep(6)
    begin = time.monotonic()
    page = web.event()
    if time.monotonic() - begin > 1:
        raise Failure(f"it waited {time.monotonic() - begin} s")
    made = number(web) - first  # of 30 intervals those of three seconds
    if not 8 <= made <= 22:
        raise Failure(f"{made} were made")
    later = web.event()
    wait_until(lambda: web.event()["counting_ns"] > later["counting_ns"] >= page["counting_ns"], "later figures")
    web.end()


def number(web):
    return int(re.search(r"^id: (\d+)$", web.ask("/live")[2], re.M)[1])


def test_top_web_serves_beside_those_that_read_nothing(case):
    """And ends while they are there."""
    web = Web(case, "--name", "nobody")
    with contextlib.ExitStack() as open_ones:
        for _ in range(100):
            slow = open_ones.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=10))
            slow.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for _ in range(5):
            web.event()
        web.end()


def test_top_web_asks_for_the_token(case):
    token = case.path("token")
    with open(token, "w") as file:
        file.write("a-token-of-thirty-two-characters\n")
    os.chmod(token, 0o600)
    os.chmod(case.folder, 0o755)
    web = Web(case, "--name", "nobody", "--token-file", token, password="a-token-of-thirty-two-characters")
    status, headers, _ = web.ask("/")
    checks.equal("without", 401, status)
    checks.contains("a browser asks", "Basic", headers["WWW-Authenticate"])

    def basic(password):
        return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()
    checks.equal("a wrong one", 401, web.ask("/live", Authorization=basic("wrong"))[0])
    checks.equal("none", 401, web.ask("/live", Authorization="Basic !")[0])
    checks.equal("the password", 200, web.ask("/", Authorization=basic("a-token-of-thirty-two-characters"))[0])
    web.event(Authorization="Bearer a-token-of-thirty-two-characters")
    web.end()


def test_top_web_is_for_this_machine_without_tls(case):
    refused = subprocess.run([Places.cuscope(), "top", "--web=0.0.0.0:9999", "--name", "nobody"],
                             capture_output=True, text=True, env=case.environment(), timeout=20)
    checks.equal("status", 1, refused.returncode)
    checks.contains("why", "needs --tls-cert, --tls-key and --token-file", refused.stderr)


def test_top_web_is_told_of_an_address_in_use(case):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = subprocess.run([Places.cuscope(), "top", f"--web=127.0.0.1:{taken.getsockname()[1]}", "--name", "nobody"],
                                 capture_output=True, text=True, env=case.environment(), timeout=20)
    checks.equal("status", 1, refused.returncode)
    checks.contains("why", "in use", refused.stderr)


def test_top_web_of_a_command_ends_with_it(case):
    web = Web(case, "--", "/bin/sh", "-c", f"{Places.program('threads')} 1 20; sleep 2")
    checks.equal("status", 0, web.process.process.wait(30))


def test_top_web_goes_with_no_once(case):
    for options, why in ((["--once", "--web"], "--once"), (["--token-file", "x"], "goes with --web"),
                         (["--web=nonsense"], "no address with a port"), (["--web=127.0.0.1:99999"], "no address with a port")):
        refused = subprocess.run([Places.cuscope(), "top", *options], capture_output=True, text=True,
                                 env=case.environment(), timeout=20)
        checks.equal("status", 2, refused.returncode)
        checks.contains("why", why, refused.stderr)


# ---- the account of the last ten seconds ---------------------------------------------------------


def planted():
    return os.path.join(Places.build, "planted", "planted")


def environment(case):
    """Work of the simulated device takes its time."""
    return {**case.environment(), "SIMCUDA_TIME_SCALE": "1"}


def start_planted(case, kind, seconds=60):
    process = case.start(planted(), kind, str(seconds), name=kind, env=environment(case))
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


def names_the_sleep(account):
    why = account["why"]
    checks.equal("cause", "sleep", why["first"]["cause"])
    checks.contains("place", "pause_between_steps", str(why["first"]["place"]))
    checks.contains("line", "host.c", str(why["first"]["place"]))
    for gpu in why["gpus"]:
        checks.equal("all of it", 1000, round(sum(10 * line["percent"] for line in gpu["account"])))
    checks.contains("in words", "Change first: asleep in ", account["text"])
    checks.equal("left out", [], account["left_out"])


@alone
def test_top_web_why_names_what_is_planted(case):
    """Again and again, of ten seconds each, which do not overlap; two readers are told the same."""
    web = Web(case, "--why", "-p", str(start_planted(case, "sleep").pid))
    web.account("recording")
    first = web.account()
    names_the_sleep(first)
    checks.equal("the same for all", first, web.account())
    second = web.account(after=first["until_ns"])
    names_the_sleep(second)
    checks.equal("seconds", (10, 10), tuple(round((its["until_ns"] - its["from_ns"]) / 1e9) for its in (first, second)))
    if abs(second["from_ns"] - first["until_ns"]) > 1e8:
        raise Failure(f"one ends at {first['until_ns']}, the next begins at {second['from_ns']}")
    if second["why"]["gpus"][0]["ns"] < 9e9:
        raise Failure(f"the account is of {second['why']['gpus'][0]['ns']} ns alone")
    web.end()


@alone
def test_top_web_why_says_what_the_longest_kernel_waits_for(case):
    env = {**environment(case), "SIMCUDA_KERNEL_US": "300"}
    loop = case.start(Places.program("gpuloop"), "60", "50", "2", env=env, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in loop.out(), "the program to begin")
    web = Web(case, "--why", "--stalls", "--cupti", Places.simcuda("libcupti.so.13"), "-p", str(loop.pid))
    account = web.account()
    checks.contains("in words", "It waits for memory .long scoreboard. in ", account["text"])
    checks.equal("reason", "long_scoreboard", account["why"]["longest_kernel"]["stall"]["reason"])
    web.end()


@alone
def test_top_web_why_watches_for_readers_alone(case):
    """Who comes back sees no account of long ago, and nobody makes one meanwhile."""
    web = Web(case, "--why", "-p", str(start_planted(case, "sleep").pid))
    web.account()
    time.sleep(4.5)  # three seconds, and an interval
    for _ in range(30):
        time.sleep(0.5)
        checks.equal("who answers", "", subprocess.run(["pgrep", "-x", "cuscope-why"], capture_output=True, text=True).stdout)
    checks.equal("then", "recording", web.account("recording")["state"])
    names_the_sleep(web.account())
    web.end()


def test_top_web_why_of_a_command_that_ends(case):
    """Within the first window, or behind one: top ends with it."""
    for seconds in ("2", "12"):
        web = Web(case, "--why", "--", planted(), "sleep", seconds, name="web" + seconds)
        web.account("recording")
        checks.equal("status", 0, web.process.process.wait(40))


@alone
def test_top_web_why_of_processes_that_do_nothing_or_are_not_there(case):
    web = Web(case, "--why", "--name", "nobody")
    account = web.account()
    checks.equal("accounts", ([], None), (account["why"]["gpus"], account["why"]["first"]))
    checks.contains("why", "No work of a GPU was seen", account["why"]["not_known"][0])
    planted = start_planted(case, "sleep", 12)
    web.end()
    web = Web(case, "--why", "--name", "planted", name="web2")
    names_the_sleep(web.account())
    planted.wait()
    wait_until(lambda: not web.account(after=0)["why"]["gpus"], "an account without it", 40)
    web.end()


@alone
def test_top_web_why_is_given_up_where_it_gets_no_answer(case):
    """The page goes on meanwhile, and so do the next accounts."""
    web = Web(case, "--why", "-p", str(start_planted(case, "sleep").pid))

    def given_up():
        for pid in subprocess.run(["pgrep", "-x", "cuscope-why"], capture_output=True, text=True).stdout.split():
            os.kill(int(pid), signal.SIGSTOP)
            before = web.event()["counting_ns"]
            wait_until(lambda: web.event()["counting_ns"] > before + 1e9, "figures meanwhile")
            with contextlib.suppress(ProcessLookupError):  # it may have said all by then: then it was ended, and it is the next one's turn
                os.kill(int(pid), signal.SIGKILL)
        return web.events().get("why", {}).get("state") == "failed"
    wait_until(given_up, "an answer that does not come", 70)
    checks.contains("is told", "no account of the last ten seconds", web.account("failed")["sentence"])
    names_the_sleep(web.account())
    web.end()


def test_top_web_why_wants_a_target_and_all_calls(case):
    for options, why in ((["--web"], "choose some"), (["--web", "--all"], "choose some"), (["--web", "-p", "1", "--only", "cuLaunch*"], "without --only"),
                         (["--web", "-p", "1", "--no-returns"], "without --no-returns"), (["--once", "-p", "1"], "without --once"),
                         (["--web", "-p", "1", "--class", "launch"], "without --class"), (["--web", "-p", "1", "--gpu-window", "1s/9s"], "")):
        refused = subprocess.run([Places.cuscope(), "top", "--why", *options], capture_output=True, text=True,
                                 env=case.environment(), timeout=20)
        checks.equal(f"status of {options}", 2, refused.returncode)
        checks.contains("why", why, refused.stderr)
