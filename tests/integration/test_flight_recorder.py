# SPDX-License-Identifier: MIT
"""The flight recorder of the node agent: what fires is written, with the seconds before and its reason."""

import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, stress, wait_until

TOKEN = "0123456789abcdef0123456789abcdef"


class Agent:
    """A node agent with a recorder, and a spool of its own."""

    def __init__(self, case, sections, spool=None):
        self.case = case
        self.folder = case.path("agent")
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self.spool = spool or os.path.join(self.folder, "spool")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.write("token", TOKEN + "\n")
        settings = {"agent": {"listen": f"127.0.0.1:{self.port}", "interval": "100ms"},
                    "tls": {"token": self.path("token")},
                    "recorder": {"enabled": "yes", "last": "20s", "after": "100ms"},
                    "spool": {"directory": self.spool, "keep_free": "0"},
                    "rules": {"cool_down": "0", "per_hour": "1000", "error": "", "leak": "no"}}
        for section, keys in sections.items():
            settings.setdefault(section, {}).update(keys)
        text = ""
        for section, keys in settings.items():
            text += f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        self.write("agent.ini", text)
        self.process = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)

    def start(self):
        self.process = self.case.cuscope("agent", "--config", self.path("agent.ini"))
        wait_until(lambda: self.process.process.poll() is not None or self.metric("recorder_up") == 1,
                   "calls to be recorded", 40)
        if self.process.process.poll() is not None:
            raise Failure(f"it ended: {self.process.err()}")
        return self

    def ask(self, method, path, token=TOKEN):
        """The status and the text of an answer; (0, '') while there is no server."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers={"Authorization": "Bearer " + token} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metric(self, name):
        """The value of cuscope_NAME, labels and all; None: there is none."""
        _, text = self.ask("GET", "/metrics")
        found = re.search(rf"^cuscope_{re.escape(name)} (\S+)$", text, re.M)
        return float(found.group(1)) if found else None

    def files(self, rule="*"):
        return sorted(glob.glob(os.path.join(self.spool, f"*-{rule}-*.cuscope")))

    def recorded(self, rule, wanted="", seconds=15):
        """Waits for a recording of a rule whose reason has these words; its file and what info says."""
        def find():
            for path in self.files(rule):
                seen = info(self.case, path)
                if wanted in seen["reason"]:
                    return path, seen
            return None
        return wait_until(find, f"a recording: {rule}, {wanted}", seconds)

    def request(self, last=None):
        """Asks for a recording, and waits for its status and answer."""
        status, text = self.ask("POST", "/record" + (f"?last={last}" if last else ""))
        checks.equal("status of the request", 202, status)
        return wait_until(lambda: self.answer(text.strip()), "an answer to the request")

    def answer(self, request):
        status, text = self.ask("GET", f"/record?{request}")
        return (status, text.strip()) if status != 202 else None

    def recorder(self):
        """The pid of the process that records: the agent's child of that name."""
        for pid in children(self.process.pid):
            if name_of(pid) == "cuscope-flight":
                return pid
        return None


def children(pid):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                after = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if after[0] != "Z" and int(after[1]) == pid:
            found.append(int(path.split("/")[2]))
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return None


def info(case, path):
    process = case.cuscope("info", "--json", path)
    checks.equal(f"status of info: {process.err()}", 0, process.wait())
    return json.loads(process.out())


def loop(case, rate, seconds=60):
    """A program that makes a launch so many times a second."""
    process = case.program("loop", seconds, rate, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


def fail_until_seen(case, agent):
    """A program with failing calls that was seen: one that is short may be over before it is hooked."""
    for _ in range(5):
        failing = case.program("errors")
        checks.equal("status of the program", 0, failing.wait())
        time.sleep(1)
        if any(f"process {failing.pid} " in info(case, path)["reason"] for path in agent.files("error")):
            return failing
    raise Failure("its failed calls were not seen")


def leftovers(agent):
    return glob.glob(os.path.join(agent.spool, ".recording-*"))


# ---- rules -------------------------------------------------------------------------------------


@alone
def test_an_error_is_written_with_the_seconds_before_it(case):
    agent = Agent(case, {"rules": {"error": "cuModuleGetFunction:500"}}).start()
    before = loop(case, 50)
    time.sleep(3)
    failing = fail_until_seen(case, agent)
    path, seen = agent.recorded("error", f"process {failing.pid} ")
    checks.equal("reason", f"error: cuModuleGetFunction of process {failing.pid} (errors) returned 500 "
                           "(CUDA_ERROR_NOT_FOUND)", seen["reason"])
    checks.equal("mode", 0o600, os.stat(path).st_mode & 0o7777)
    if seen["duration_ns"] < 2.5e9:
        raise Failure(f"only {seen['duration_ns'] / 1e9} s are held")
    calls = {p["pid"]: p["calls"] for p in seen["processes"]}
    if calls.get(before.pid, 0) < 200 or not calls.get(failing.pid):
        raise Failure(f"calls by process: {calls}")
    report = case.cuscope("report", path)
    checks.equal("status of report", 0, report.wait())
    if seen["reason"] not in report.out():
        raise Failure(f"the report does not name the reason: {report.out()[:600]}")
    if not agent.metric('recordings_total{reason="error"}'):
        raise Failure("no metric counts the recording")
    checks.equal("lost", 0.0, agent.metric("recorder_lost_events_total"))


@alone
def test_a_slow_step_is_found_without_help_of_the_program(case):
    agent = Agent(case, {"rules": {"slow_step": "3"}}).start()
    stepping = loop(case, 20)
    wait_until(lambda: agent.metric("recorder_stepping_threads"), "steps to be known")
    time.sleep(1)
    checks.equal("before", [], [f for f in agent.files("slow_step")
                                if f"process {stepping.pid} " in info(case, f)["reason"]])
    stepping.signal(signal.SIGSTOP)
    time.sleep(1.5)
    stepping.signal(signal.SIGCONT)
    _, seen = agent.recorded("slow_step", f"process {stepping.pid} ")
    found = re.search(r"a step of 1 launch of process \d+ \(loop\) took (\S+) ms, \S+ times the median of "
                      r"(\S+) ms", seen["reason"])
    if not found or not 1400 < float(found.group(1)) < 4000 or not 40 < float(found.group(2)) < 120:
        raise Failure(f"reason: {seen['reason']}")


@alone
def test_a_suspected_leak_is_written_with_its_place(case):
    agent = Agent(case, {"rules": {"leak": "yes"}, "leaks": {"interval": "400ms", "older": "100ms"}}).start()
    leaking = case.program("leak", 200, 50)
    _, seen = agent.recorded("leak", f"process {leaking.pid} ", 30)
    checks.contains("reason", "from leaky::Model::grow_cache", seen["reason"])


def plant(case, **settings):
    """What the simulated GPU tells from now on."""
    with open(case.path("gpu.new"), "w") as file:
        file.write("".join(f"{name} {value}\n" for name, value in settings.items()))
    os.rename(case.path("gpu.new"), case.path("gpu"))


def with_gpu(case, sections):
    """An agent that sees a simulated GPU, whose settings can be changed."""
    plant(case, busy=50)
    case.env = {"LD_LIBRARY_PATH": Places.libraries() + ":" + os.path.join(Places.build, "simnvml"),
                "SIMNVML_FILE": case.path("gpu"), "SIMNVML_PID": str(os.getpid())}
    return Agent(case, sections).start()


@alone
def test_an_xid_is_written(case):
    agent = with_gpu(case, {})
    loop(case, 20)
    time.sleep(3)  # it is read once a second
    checks.equal("before", [], agent.files())
    plant(case, busy=50, xids=1, xid=31)
    _, seen = agent.recorded("xid")
    checks.contains("reason", "^xid: Xid 31 of GPU GPU-", seen["reason"])


@alone
def test_full_memory_and_an_idle_gpu_are_written_once_each(case):
    agent = with_gpu(case, {"rules": {"memory": "90", "idle": "3s"}})
    loop(case, 20)
    time.sleep(2.5)
    checks.equal("before", [], agent.files())
    plant(case, busy=50, used_gib=75)
    _, seen = agent.recorded("memory")
    checks.contains("reason", r"^memory: 9\d\.\d % of the memory of GPU GPU-\S+ is in use$", seen["reason"])
    plant(case, busy=0, used_gib=75)
    _, seen = agent.recorded("idle")
    checks.contains("reason", r"^idle: GPU GPU-\S+ has been idle for \d\.\d s while 1 process had a context$",
                    seen["reason"])
    time.sleep(3)
    checks.equal("recordings", 2, len(agent.files()))


@alone
def test_a_rule_that_is_off_and_one_that_cools_down_write_nothing(case):
    agent = Agent(case, {"rules": {"error": "cuModuleGetFunction:500", "cool_down": "10m"}}).start()
    fail_until_seen(case, agent)
    agent.recorded("error")
    time.sleep(1.2)  # the process that judges calls tells of a rule once a second
    held_back = 'recordings_held_back_total{limit="cool_down"}'
    for _ in range(5):  # one that is short may be over before it is hooked
        case.program("errors").wait()
        time.sleep(1)
        if agent.metric(held_back):
            break
    wait_until(lambda: agent.metric(held_back), "the cool-down")
    checks.equal("recordings", 1, len(agent.files()))


# ---- GPU times after a rule fired -------------------------------------------------------------


@alone
def test_gpu_times_are_measured_after_a_rule_fired(case):
    agent = Agent(case, {"recorder": {"gpu_window": "1s"}, "rules": {"error": "cuModuleGetFunction:500"}}).start()
    before = loop(case, 50)
    failing = fail_until_seen(case, agent)
    fail_until_seen(case, agent)  # while they are measured, or soon after
    checks.equal("before it fired", 0, info(case, agent.files("error")[0])["activities"]["kernels"])
    _, seen = agent.recorded("error_gpu", f"process {failing.pid} ", 30)
    checks.contains("reason", r"^error: cuModuleGetFunction of process .*; GPU times after it$", seen["reason"])
    if seen["activities"]["kernels"] < 20:
        raise Failure(f"kernels that were measured: {seen['activities']}")
    if before.pid not in [p["pid"] for p in seen["processes"]]:
        raise Failure(f"processes: {seen['processes']}")
    wait_until(lambda: not [pid for pid in children(agent.process.pid) if name_of(pid) == "cuscope-flight"
                            and pid != agent.recorder()], "its end")
    checks.equal("windows", agent.metric('recordings_total{reason="error"}'),
                 sum(agent.metric(f'gpu_windows_total{{outcome="{word}"}}') for word in ("written", "busy")))


def test_gpu_times_are_refused_where_no_process_can_be_entered(case):
    agent = Agent(case, {"recorder": {"gpu_window": "1s"}})
    process = case.start("setpriv", "--bounding-set=-sys_ptrace", Places.cuscope(), "agent", "--config",
                         agent.path("agent.ini"))
    checks.equal("status", 1, process.wait())
    checks.contains("error", "gpu_window, which enters programs that run: needs CAP_SYS_PTRACE", process.err())
    refused(case, agent.spool, "gpu_window does not go with step_range",
            {"recorder": {"gpu_window": "1s"}, "rules": {"step_range": "step"}})


# ---- requests ----------------------------------------------------------------------------------


@alone
def test_a_request_is_answered_with_the_file_and_wants_the_token(case):
    agent = Agent(case, {}).start()
    loop(case, 50)
    time.sleep(4)
    for method, path, token, wanted in (("POST", "/record", None, 401), ("POST", "/record", "x" * 32, 401),
                                        ("GET", "/record?request=1", None, 401),
                                        ("GET", "/record", TOKEN, 400), ("PUT", "/record", TOKEN, 405),
                                        ("POST", "/metrics", TOKEN, 405),
                                        ("POST", "/record?last=5x", TOKEN, 400),
                                        ("POST", "/record?last=-1s", TOKEN, 400),
                                        ("POST", "/record?last=0", TOKEN, 400),
                                        ("GET", "/record?request=99", TOKEN, 404)):
        checks.equal(f"{method} {path} {token}", wanted, agent.ask(method, path, token)[0])
    checks.equal("recordings", [], agent.files())
    status, name = agent.request("2s")
    checks.equal(f"status of the answer: {name}", 200, status)
    seen = info(case, os.path.join(agent.spool, name))
    checks.equal("reason", "request: the last 2 s", seen["reason"])
    if not 1e9 < seen["duration_ns"] < 3.6e9:  # whole pieces of up to a second
        raise Failure(f"{seen['duration_ns'] / 1e9} s were written")
    status, text = agent.request()
    checks.equal(f"the next one: {text}", 200, status)


@alone
def test_without_a_token_nobody_can_ask(case):
    agent = Agent(case, {"tls": {"token": ""}}).start()
    status, text = agent.ask("POST", "/record", None)
    checks.equal("status", 403, status)
    checks.contains("text", "wants a token", text)


# ---- what goes wrong ---------------------------------------------------------------------------


@alone
def test_a_recorder_that_is_killed_begins_anew_and_the_agent_goes_on(case):
    agent = Agent(case, {}).start()
    process = loop(case, 50)
    wait_until(lambda: agent.metric(f'agent_snapshots_total'), "snapshots")
    os.kill(agent.recorder(), signal.SIGKILL)
    status, text = agent.request()
    checks.equal(f"a request meanwhile: {text}", 503, status)
    if text not in ("calls are not being recorded at the moment", "the process that records has ended"):
        raise Failure(f"why: {text}")
    wait_until(lambda: agent.metric('recordings_failed_total{why="not_running"}')
               or agent.metric('recordings_failed_total{why="crashed"}'), "a metric that counts it")
    wait_until(lambda: agent.metric("recorder_up") == 1, "another one to record")
    checks.equal("starts", 2.0, agent.metric("recorder_starts_total"))
    checks.contains("log", "the process that records has ended", agent.process.err())
    time.sleep(1.5)
    status, name = agent.request()
    checks.equal(f"status of the answer: {name}", 200, status)
    seen = info(case, os.path.join(agent.spool, name))
    if process.pid not in [p["pid"] for p in seen["processes"]]:
        raise Failure("it does not see processes that were there before")


def test_a_recorder_whose_loop_does_not_turn_is_told(case):
    """A process that is stopped stands for one that hangs: it says nothing any more."""
    agent = Agent(case, {}).start()
    wait_until(lambda: agent.ask("GET", "/healthz")[0] == 200, "a healthy agent")
    recorder = agent.recorder()
    os.kill(recorder, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        wait_until(lambda: agent.ask("GET", "/healthz", token=None)[0] == 503, "the news", 10)
        if time.monotonic() - begin < 3:
            raise Failure("it was told too soon")
        checks.contains("what it says", r"the flight recorder hangs \d+\.\d{3} s",
                        agent.ask("GET", "/healthz", token=None)[1])
        if not agent.metric("recorder_loop_age_seconds") > 4:
            raise Failure("the metric does not tell")
    finally:
        os.kill(recorder, signal.SIGCONT)
    wait_until(lambda: agent.ask("GET", "/healthz")[0] == 200, "a healthy agent again")


COPIES = 6  # of the driver in each image, with 459 hooks each: 6 images would have all hooks that there are


def run_image(case, number):
    """What another container's image would be: with files of its own, which are gone after it. Its pid."""
    folder = case.path(f"image-{number}")
    os.makedirs(folder)
    for i in range(COPIES):
        os.makedirs(f"{folder}/{i}")
        shutil.copy(Places.simcuda("push", "libcuda.so.1"), f"{folder}/{i}/libcuda.so.1")
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="0",
               LD_PRELOAD=":".join(f"{folder}/{i}/libcuda.so.1" for i in range(COPIES)))
    with subprocess.Popen([Places.program("loop"), "2", "100"], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        checks.equal("status", 0, process.wait())
    shutil.rmtree(folder)
    return process.pid


@alone
@stress("it takes 25 s")
def test_images_that_come_and_go_are_recorded_each(case):
    agent = Agent(case, {"recorder": {"last": "60s"}}).start()
    pids = [run_image(case, number) for number in range(12)]
    status, name = agent.request()
    checks.equal(f"status of the answer: {name}", 200, status)
    process = case.cuscope("export", os.path.join(agent.spool, name), "--format", "jsonl", "--function", "cuLaunchKernel", "-o", "-")
    checks.equal("status of export", 0, process.wait())
    calls = [json.loads(line) for line in process.out().splitlines() if '"cuLaunchKernel"' in line]
    for number, pid in enumerate(pids):
        seen = [call for call in calls if call.get("pid") == pid]
        if len(seen) < 40:
            raise Failure(f"image {number}: {len(seen)} of some 200 launches were recorded")
        checks.equal("library", {"libcuda.so.1"}, {call["lib"] for call in seen})


@alone
def test_a_recorder_ends_with_its_agent(case):
    agent = Agent(case, {}).start()
    recorder = agent.recorder()
    agent.process.signal(signal.SIGKILL)
    agent.process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{recorder}/exe") or name_of(recorder) is None
               or open(f"/proc/{recorder}/stat").read().rpartition(")")[2].split()[0] == "Z",
               "the recorder to end", 20)


def kill_writer(agent):
    """Kills recorder and writer while a file is half there. False: it was whole before."""
    recorder = wait_until(lambda: agent.metric("recorder_up") == 1 and agent.recorder(), "a recorder")
    whole = len(agent.files())
    status, _ = agent.ask("POST", "/record")
    checks.equal("status of the request", 202, status)
    end = time.monotonic() + 5
    while time.monotonic() < end and not leftovers(agent):
        if len(agent.files()) > whole:
            return False
    os.killpg(recorder, signal.SIGKILL)  # it has a session of its own
    time.sleep(0.5)
    return len(agent.files()) == whole and leftovers(agent)


def as_user(case, uid, name, *arguments):
    return case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", Places.program(name),
                      *map(str, arguments), stdin=subprocess.PIPE, name=f"{name}-{uid}-{len(case.started)}")


def times_of(case, path, pid):
    """When the calls of a process were, in seconds since the recording's begin."""
    process = case.cuscope("export", path, "--format", "jsonl", "--pid", pid, "-o", "-")
    checks.equal(f"status of export: {process.err()}", 0, process.wait())
    events = [json.loads(line) for line in process.out().splitlines()]
    return [event["ts"] / 1e3 for event in events if "phase" in event]


@alone
def test_users_who_flood_push_nobody_elses_seconds_out(case):
    """What two users' programs call in a few seconds fills the memory: a third one's seconds are all there."""
    os.chmod(case.folder, 0o755)
    agent = Agent(case, {"recorder": {"last": "20s", "memory": "1MiB"}}).start()
    quiet = as_user(case, 1235, "loop", 120, 20)
    wait_until(lambda: "ready" in quiet.out(), "the program to begin")
    floods = {uid: as_user(case, uid, "hostile-floods", "streams", 90000000) for uid in (1234, 1236)}
    short = {uid: f'recorder_user_held_seconds{{user="user {uid}"}}' for uid in floods}
    for uid in floods:
        wait_until(lambda name=short[uid]: (agent.metric(name) or 20) < 15, f"user {uid} to be told of", 60)
    wait_until(lambda: (agent.metric("recorder_held_seconds") or 0) > 19, "all seconds to be held", 60)
    time.sleep(2)
    held = agent.metric("recorder_held_seconds")
    if held < 19:
        raise Failure(f"{held} s are held")
    if not agent.metric("recorder_left_out_events_total"):
        raise Failure("no metric counts what was left out")
    status, name = agent.request()
    checks.equal("status", 200, status)
    path = os.path.join(agent.spool, name)
    seen = info(case, path)
    end = seen["duration_ns"] / 1e9
    if times_of(case, path, quiet.pid)[0] > 1 or end < 19:
        raise Failure(f"of {end} s of the quiet one {times_of(case, path, quiet.pid)[0]} are not there")
    for uid, flood in floods.items():
        told = [re.match(rf"user {uid}: only the last (\S+) s are there, .*; (\d+) events before were left out$", miss["why"])
                for miss in seen["missed"]["hooks"] if miss["kind"] == "over_budget"]
        told = [found for found in told if found]
        checks.equal(f"what is told of user {uid}", 1, len(told))
        times = times_of(case, path, flood.pid)
        if abs(float(told[0].group(1)) - (end - times[0])) > 0.3:
            raise Failure(f"user {uid}: {told[0].group(0)}, and the first call is {end - times[0]} s before the end")
        if max(after - before for before, after in zip(times, times[1:])) > 0.5 or end - times[-1] > 0.5:
            raise Failure(f"what is held of user {uid} has a hole")
    checks.equal("complete", False, seen["missed"]["complete"])


@alone
def test_a_writer_that_is_killed_leaves_nothing_that_looks_whole(case):
    agent = Agent(case, {}).start()
    case.program("gpuloop", 60, 1000, 2, stdin=subprocess.PIPE)
    wait_until(lambda: (agent.metric("recorder_held_bytes") or 0) > 5e5, "enough to be held", 30)
    if not any(kill_writer(agent) for _ in range(5)):
        raise Skip("each file was whole before its writer could be killed")
    wait_until(lambda: agent.metric('recordings_failed_total{why="crashed"}'), "a metric that counts it")
    for path in agent.files():
        info(case, path)
    checks.equal("left behind", 1, len(leftovers(agent)))
    agent.process.signal(signal.SIGTERM)
    checks.equal("status", 0, agent.process.wait())
    agent.start()
    wait_until(lambda: not leftovers(agent), "what was left behind to be removed")
    wait_until(lambda: "1 unfinished recording was removed" in agent.process.err(), "a line about it")


@alone
def test_a_full_disk_is_told_and_leaves_nothing(case):
    spool = case.path("disk")
    os.makedirs(spool, mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", spool],
                      capture_output=True).returncode:
        raise Skip("no file system can be mounted")
    try:
        agent = Agent(case, {}, spool).start()
        loop(case, 50)
        status, text = agent.request()
        checks.equal(f"status: {text}", 503, status)
        wait_until(lambda: agent.metric('recordings_failed_total{why="no_space"}') == 1, "the metric")
        checks.equal("in the spool", [], os.listdir(spool))
        wait_until(lambda: "nothing was written for the rule request" in agent.process.err(), "the log")
    finally:
        subprocess.run(["umount", "-l", spool], check=False)


def refused(case, spool, words, sections=None):
    agent = Agent(case, sections or {}, spool)
    process = case.cuscope("agent", "--config", agent.path("agent.ini"))
    checks.equal("status", 1, process.wait())
    checks.contains("error", words, process.err())


def test_a_spool_that_others_could_change_is_refused(case):
    agent = Agent(case, {})
    os.mkdir(agent.path("open"))
    os.chmod(agent.path("open"), 0o777)
    refused(case, agent.path("open"), "others than its owner may write")
    os.symlink("open", agent.path("link"))
    refused(case, agent.path("link"), "is no folder, or a link")
    os.mkdir(agent.path("other"), 0o700)
    os.chown(agent.path("other"), 1, 1)
    refused(case, agent.path("other"), "belongs to user 1")


def test_mistakes_in_the_settings_of_the_recorder_are_told_with_their_line(case):
    for section, key, value, words in (
            ("recorder", "last", "0", "from 1s to 10m"), ("recorder", "memory", "8k", "from 1MiB to 4GiB"),
            ("recorder", "max_overhead", "101", "from 1 to 100"), ("spool", "when_full", "newest", "oldest: those"),
            ("spool", "files", "0", "from 1 to 10000"), ("rules", "error", "cuInit", "FUNCTION:CODE"),
            ("rules", "memory", "101", "from 1 to 100"), ("rules", "slow_step", "fast", "its median"),
            ("rules", "cooldown", "5m", "did you mean 'cool_down'"), ("recorder", "gpu_window", "500ms", "from 1s to 60s"),
            ("recorder", "gpu_window", "2m", "from 1s to 60s")):
        agent = Agent(case, {section: {key: value}})
        process = case.cuscope("agent", "--config", agent.path("agent.ini"))
        if process.wait() not in (1, 2):
            raise Failure(f"{key} = {value} is taken")
        checks.contains(f"{key} = {value}", words, process.err())
        checks.contains(f"{key} = {value}", "agent.ini", process.err())
