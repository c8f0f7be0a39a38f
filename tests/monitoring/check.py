#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real Prometheus scrapes `cuscope agent` while programs do what is known, on the simulated driver.

    tests/monitoring/check.py BUILD

Every query of packaging/prometheus and packaging/grafana is run against it and has to return something; alerts without
their thresholds. Ends with "N passed, N failed[, N skipped]".
"""

import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RULES = os.path.join(ROOT, "packaging", "prometheus", "cuscope-alerts.yml")
DASHBOARD = os.path.join(ROOT, "packaging", "grafana", "cuscope.json")
SETTINGS = ("[agent]\nlisten = 127.0.0.1:{port}\ninterval = 500ms\nage = 1s\n[leaks]\ninterval = 500ms\nolder = 500ms\n"
            "[recorder]\nenabled = yes\nafter = 100ms\n[spool]\ndirectory = {spool}\nkeep_free = 0\n[rules]\nerror =\n"
            "late_rank = 20\n[ranks]\nenabled = yes\nras = no\n")
LAUNCH_SECONDS = 10
PATIENCE = 40

failed, passed = [], 0


def check(name, good, why=""):
    global passed
    if good:
        passed += 1
    else:
        failed.append(name)
        print(f"FAIL: {name}: {why}", flush=True)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class Scene:
    """The agent, the programs that it watches, and the server that scrapes it."""

    def __init__(self, build, folder):
        self.build, self.folder, self.started = build, folder, []
        self.agent, self.server = free_port(), free_port()
        self.spool = os.path.join(folder, "spool")
        self.gpu = os.path.join(folder, "gpu")
        self.counts = os.path.join(folder, "counts")  # of gpuloop, see tests/programs/sample.h
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{build}/simcuda/push:{build}/simcuda"}

    def start(self, *command, **how):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, **{"stdout": subprocess.DEVNULL, **how})
        self.started.append(process)
        return process

    def program(self, name, *words, **environment):
        return self.start(f"{self.build}/{name if '/' in name else 'programs/' + name}", *words,
                          env={**self.environment, **environment}, stderr=subprocess.DEVNULL)

    def wait_for(self, url):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return get(url)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def begin(self):
        settings = os.path.join(self.folder, "agent.ini")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(SETTINGS.format(port=self.agent, spool=self.spool))
        with open(os.path.join(self.folder, "agent.log"), "w", encoding="utf-8") as log:
            self.start(f"{self.build}/cuscope", "agent", "--config", settings, stderr=log,
                       env={**os.environ, "LD_LIBRARY_PATH": f"{self.build}/simnvml", "SIMNVML_FILE": self.gpu})
        self.wait_for(f"http://127.0.0.1:{self.agent}/metrics")
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
                       f"rule_files: [{json.dumps(self.impatient_rules())}]\n"
                       "scrape_configs:\n  - job_name: cuscope\n    static_configs: [{targets: ['127.0.0.1:%d']}]\n" % self.agent)
        with open(os.path.join(self.folder, "prometheus.log"), "w", encoding="utf-8") as log:
            self.start(f"{self.build}/prometheus/usr/bin/prometheus", f"--config.file={config}",
                       f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.server}", stderr=log)
        self.wait_for(f"http://127.0.0.1:{self.server}/-/ready")

    def impatient_rules(self):
        """The alerts as they are shipped, but for waiting: the program leaks KiB in seconds, not GiB in days."""
        path = os.path.join(self.folder, "alerts.yml")
        with open(RULES, encoding="utf-8") as shipped, open(path, "w", encoding="utf-8") as file:
            text = re.sub(r"\bfor: \w+", "for: 1s", shipped.read()).replace("late_seconds_total[10m]", "late_seconds_total[10s]")
            file.write(text.replace("> 268435456", "> 65536"))
        return path

    def plant(self, settings):
        """What the simulated GPU tells from now on."""
        with open(self.gpu + ".new", "w", encoding="utf-8") as file:
            file.write(settings)
        os.rename(self.gpu + ".new", self.gpu)

    def firing(self):
        alerts_now = json.loads(get(f"http://127.0.0.1:{self.server}/api/v1/alerts"))["data"]["alerts"]
        return {one["labels"]["alertname"]: one["labels"] for one in alerts_now if one["state"] == "firing"}

    def query(self, expression):
        url = f"http://127.0.0.1:{self.server}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            return json.loads(get(url))["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.loads(error.read().decode())["error"]) from error

    def value(self, expression):
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def value_that_is(self, wanted, expression):
        """What it is as soon as it is what is wanted, or in the end."""
        until = time.monotonic() + PATIENCE
        while (value := self.value(expression)) != wanted and time.monotonic() < until:
            time.sleep(0.2)
        return value

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()


def work(scene):
    """What is done and known: returns the pid of gpuloop, and how many kernels it launched."""
    ranks = {"SIMCUDA_TIME_SCALE": "1", "SIMNCCL_DIR": scene.folder}
    scene.program("copies").wait()  # from the first process on that loads it, a library is hooked when it is loaded
    scene.program("planted/planted", "nccl_busy", "1", **ranks).wait()
    time.sleep(2)
    loop = scene.program("gpuloop", str(LAUNCH_SECONDS), "50", SAMPLE_COUNTS=scene.counts)
    leak = scene.program("leak", "100000", "10")
    scene.program("planted/planted", "nccl_sleep", "60", **ranks)
    while not scene.query("cuscope_gpu_xids_total") and loop.poll() is None:  # its first scrape is seconds after its start
        time.sleep(0.5)
    scene.plant(f"pid {leak.pid}\nxids 2\nxid 31\nthrottle 64\nfield.4 9\n")
    until = time.monotonic() + LAUNCH_SECONDS
    while time.monotonic() < until:
        for name in ("copies", "errors"):
            scene.program(name).wait()
        time.sleep(0.5)
    loop.communicate()
    time.sleep(2)  # for two looks of the agent, and a scrape
    with open(scene.counts, encoding="utf-8") as file:
        return loop.pid, sum(json.load(file)["launches"].values())


def alerts():
    """(name, what stands before the threshold)"""
    import yaml
    with open(RULES, encoding="utf-8") as file:
        for group in yaml.safe_load(file)["groups"]:
            for rule in group["rules"]:
                yield rule["alert"], re.fullmatch(r"(.*\S)\s*(?:[<>]|==)\s*[\d.]+\s*", rule["expr"], re.S)[1]


def dashboard():
    with open(DASHBOARD, encoding="utf-8") as file:
        for panel in json.load(file)["panels"]:
            for target in panel.get("targets", []):
                yield panel["title"], target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")


def check_answers(scene):
    for name, expression in alerts():
        try:
            check(f"alert {name}", scene.query(expression), f"nothing is returned by {expression}")
        except AssertionError as error:
            check(f"alert {name}", False, f"{error}: {expression}")
    for title, expression in dashboard():
        try:
            check(f"dashboard: {title}", scene.query(expression), f"nothing is returned by {expression}")
        except AssertionError as error:
            check(f"dashboard: {title}", False, f"{error}: {expression}")


def check_launches(scene, pid, launches):
    """Before all else is asked: a process that has ended keeps its series for 60 s."""
    seen = scene.value_that_is(launches, f'cuscope_process_launches_total{{pid="{pid}"}}')
    check("launches are those of the program", launches and seen == launches, f"{seen} of {launches}")


def check_values(scene):
    check("the leak is found in the code that leaks", scene.query('cuscope_suspected_leak_bytes{process="leak",place=~".*grow_cache.*"}'),
          str(scene.query("cuscope_suspected_leak_bytes")))
    invalid = scene.query('increase(cuscope_errors_total[1m]) > 0')
    check("failed calls have their function and code", any("function" in one["metric"] and "code" in one["metric"] for one in invalid), str(invalid))
    check("nothing is lost", scene.value("sum(cuscope_lost_events_total)") == 0, str(scene.query("cuscope_lost_events_total > 0")))
    check("the process is known", scene.query('cuscope_process_info{process="leak",user="root"}'), str(scene.query("cuscope_process_info")))
    rules = json.loads(get(f"http://127.0.0.1:{scene.server}/api/v1/rules"))["data"]["groups"]
    bad = [rule["name"] for group in rules for rule in group["rules"] if rule["health"] != "ok"]
    check("the server evaluates every alert", rules and not bad, str(bad))


def recorded(scene, rule):
    """What `cuscope info` says of the first recording of this rule; nothing where there is none."""
    for path in sorted(glob.glob(os.path.join(scene.spool, f"*-{rule}-*.cuscope"))):
        done = subprocess.run([f"{scene.build}/cuscope", "info", "--json", path], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}
    return {}


def check_alerts_and_spool(scene):
    """From what a program does to the alert that fires for it and the trace that lies in the spool."""
    until = time.monotonic() + PATIENCE
    wanted = {"CuscopeRankLate", "CuscopeSuspectedLeak", "CuscopeCallsFail", "CuscopeGpuXid", "CuscopeGpuEccErrors", "CuscopeGpuThrottled"}
    while not (wanted <= set(scene.firing()) and recorded(scene, "leak") and recorded(scene, "xid")
               and recorded(scene, "late_rank")) and time.monotonic() < until:
        time.sleep(1)
    firing = scene.firing()
    check("the alerts for what happened fire", wanted <= set(firing), f"{wanted - set(firing)} do not")
    silent = {"CuscopeRankMissing", "CuscopeAgentDown", "CuscopeGpuDoesNotAnswer", "CuscopeRecordingsFail", "CuscopeGpuHot"}
    check("others do not", not silent & set(firing), str(firing))
    leak = recorded(scene, "leak")
    check("the trace of the leak is in the spool", "grow_cache" in leak.get("reason", "") and leak.get("calls"), str(leak)[:300])
    check("the alert names the place that the trace does", "grow_cache" in firing.get("CuscopeSuspectedLeak", {}).get("place", ""), str(firing))
    late = recorded(scene, "late_rank")
    check("so is that of the late rank", "rank 1 of" in late.get("reason", ""), str(late)[:300])
    check("the alert names the rank that the trace does", firing.get("CuscopeRankLate", {}).get("rank") == "1"
          and f"process {firing['CuscopeRankLate']['pid']} " in late.get("reason", ""), f"{firing.get('CuscopeRankLate')}, {late.get('reason')}")
    xid = recorded(scene, "xid")
    check("so is what was before the Xid", "Xid 31" in xid.get("reason", ""), str(xid)[:300])
    check("a metric counts the Xids by number", scene.value('cuscope_gpu_xids_by_code_total{xid="31"}') == 2,
          str(scene.query("cuscope_gpu_xids_by_code_total")))


def promtool(build, *words, **how):
    return subprocess.run([f"{build}/prometheus/usr/bin/promtool", *words], capture_output=True, text=True, check=False, **how)


def check_with_promtool(build, scene):
    done = promtool(build, "check", "metrics", input=get(f"http://127.0.0.1:{scene.agent}/metrics"))
    said = [line for line in (done.stdout + done.stderr).splitlines() if "camelCase" not in line]  # as DCGM's exporter has them
    check("promtool check metrics", not said, "\n".join(said))


def check_rules(build):
    done = promtool(build, "check", "rules", RULES)
    check("promtool check rules", done.returncode == 0, done.stdout + done.stderr)
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "monitoring", "*_test.yml"))):
        done = promtool(build, "test", "rules", path)
        check(f"promtool test rules {os.path.basename(path)}", done.returncode == 0, done.stdout + done.stderr)
    with open(os.path.join(ROOT, "tests", "monitoring", "alerts_test.yml"), encoding="utf-8") as file:
        tested = set(re.findall(r"alertname: (\w+)", file.read()))
    check("every alert is tested", tested == {name for name, _ in alerts()}, str({name for name, _ in alerts()} ^ tested))


def main():
    build = os.path.abspath(sys.argv[1])
    if not os.path.exists(f"{build}/prometheus/usr/bin/promtool"):
        print("SKIP: all of it: Debian's prometheus could not be fetched")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    check_rules(build)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(build, folder)
        try:
            scene.begin()
            check_launches(scene, *work(scene))
            check_answers(scene)
            check_values(scene)
            check_alerts_and_spool(scene)
            check_with_promtool(build, scene)
        finally:
            scene.end()
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
