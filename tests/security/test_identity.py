# SPDX-License-Identifier: MIT
"""Processes that lie about who they are, or keep whoever asks waiting: the node agent goes on and stays true to others."""

import os
import re
import shutil
import time

import checks
from harness import Failure, Places
from identities import ID, UID, Agent, cgroup, in_mounts, program
from test_hang import serve, text_of

OTHERS = {"RANK": "7"}


def check_goes_on(case, agent):
    """Another process is known all the same, and SIGTERM ends the agent."""
    agent.wait_for(program(case, env=OTHERS), rank="7")
    checks.equal("status of the agent", 0, agent.end())


def in_pod(case, number, *before, **more):
    """A program in a pod, once the agent knows it; the agent, its labels and what is to be closed."""
    agent = Agent(case)
    process = in_mounts(case, *before, **more)
    labels = agent.wait_for(process, pod_uid=UID + number)
    return agent, process, labels


def test_identity_fifo_for_a_hostname(case):
    """Who opens it waits for a writer."""
    os.mkfifo(case.path("fifo"))
    with cgroup(f"/kubepods/pod{UID}11/{ID}") as folder:
        agent, process, labels = in_pod(case, "11", f"mount --bind {case.path('fifo')} /etc/hostname", folder=folder)
        checks.equal("pod", None, labels.get("pod"))
        check_goes_on(case, agent)
        process.stop()


def test_identity_file_that_never_answers(case):
    """A user serves /etc/hostname by FUSE, and does not answer cuscope."""
    with serve(case, text_of(case, "trainer-0\n"), 1000) as (server, file):
        with cgroup(f"/kubepods/pod{UID}12/{ID}") as folder:
            agent, process, labels = in_pod(case, "12", f"mount --bind {file} /etc/hostname", folder=folder)
            checks.equal("pod", None, labels.get("pod"))
            check_goes_on(case, agent)
            process.stop()


def test_identity_folder_that_never_answers(case):
    """Looking for the path already waits, for 2 s; then it is not tried again."""
    with serve(case, text_of(case, "x")) as (server, file):
        with cgroup(f"/kubepods/pod{UID}13/{ID}") as folder:
            agent = Agent(case)
            served = os.path.dirname(file)
            process = in_mounts(case, f"mount -t tmpfs none {os.path.realpath('/var/run')}", "mkdir -p /var/run/secrets",
                                f"mount --bind {served} /var/run/secrets", folder=folder)
            began = time.monotonic()
            agent.wait_for(process, pod_uid=UID + "13")
            if time.monotonic() - began > 10:
                raise Failure("the agent waited for long")
            checks.contains("the server", "no answer to process", server.err())
            check_goes_on(case, agent)
            process.stop()


def test_identity_link_and_file_of_roots(case):
    """What the process may not read, root does not read for it, wherever it is mounted."""
    with open(case.path("secret"), "w") as file:
        file.write("secret\n")
    os.chmod(case.path("secret"), 0o600)
    with cgroup(f"/kubepods/pod{UID}14/{ID}") as folder:
        agent, process, labels = in_pod(case, "14", f"mount --bind {case.path('secret')} /etc/hostname", folder=folder,
                                        env={"AS": "setpriv --reuid 1234 --regid 1234 --clear-groups", "HOSTNAME": "mine"})
        checks.equal("pod", "mine", labels.get("pod"))
        checks.contains_not("metrics", "secret", agent.metrics())
        checks.equal("user", "1234", labels["user"])
        check_goes_on(case, agent)
        process.stop()


def test_identity_names_and_values_that_break_out(case):
    """Name and variables with quotes, newlines, terminal escapes and bytes that are no UTF-8."""
    evil = os.path.join(os.fsencode(case.folder), b'a"}\n\x1b[1m\xff')
    shutil.copy(Places.program("gpuloop"), evil)
    value = b'1"} 5\ncuscope_fake_total 1\n\x1b]0;x\x07\xc3\\'
    agent = Agent(case, "--label-env", "TEAM")
    process = program(case, path=evil, env={b"RANK": value, b"TEAM": value, b"SLURM_JOB_ID": value})
    agent.wait_for(process, env_TEAM='1\\"} 5\\\\x0acuscope_fake_total 1\\\\x0a\\\\x1b]0;x\\\\x07\\\\xc3\\\\')
    text = agent.metrics()
    checks.contains_not("metrics", r"(?m)^cuscope_fake|\x1b", text)
    for line in text.splitlines():
        if not re.fullmatch(r'#.*|\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? -?[\d.e+-]+', line):
            raise Failure(f"a line that is none: {line!r}")
    check_goes_on(case, agent)


def test_identity_of_two_mebibytes(case):
    """An environment as large as can be; what stands behind its first 256 KiB is not looked at."""
    agent = Agent(case)
    large = {f"A{i:02}": "x" * 100000 for i in range(15)}
    process = case.start("/usr/bin/env", "-i", *[f"{key}={value}" for key, value in large.items()], "RANK=9",
                         *[f"{key}={value}" for key, value in case.environment().items()
                           if key in ("LD_LIBRARY_PATH", "SIMCUDA_TIME_SCALE")],
                         Places.program("gpuloop"), "60", "100", stdin=-1)
    labels = agent.wait_for(process, command="gpuloop")
    checks.equal("rank", None, labels.get("rank"))
    check_goes_on(case, agent)


def test_identity_of_processes_that_come_and_go(case):
    """In a container that is gone each time it is read."""
    with cgroup(f"/kubepods/pod{UID}15/{ID}") as folder:
        agent = Agent(case)
        for _ in range(40):
            process = program(case, folder=folder, words=("0", "1"))
            process.process.stdin.close()
            process.wait()
        if not re.search(r'cuscope_agent_identity_reads_total\{outcome="refused"\} 0', agent.metrics()):
            raise Failure("there was no room")
        check_goes_on(case, agent)


LEFT_ALONE = """import ctypes, sys, threading, time
cuda, at = ctypes.CDLL(sys.argv[1]), ctypes.c_uint64()
def work():
    while True:
        cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(512))
        time.sleep(0.02)
cuda.cuInit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_identity_of_a_process_whose_first_thread_has_ended(case):
    """It is what the kernel knows of it, and what its other threads have: nobody sheds that by ending one."""
    with open(case.path("left.py"), "w") as file:
        file.write(LEFT_ALONE)
    with cgroup(f"/kubepods/pod{UID}16/{ID}") as folder:
        agent = Agent(case)
        process = program(case, folder=folder, path="/usr/bin/python3", env={"AS": "setpriv --reuid 1234 --clear-groups", "RANK": "5"},
                          words=(case.path("left.py"), Places.simcuda("push", "libcuda.so.1")))
        labels = agent.wait_for(process, user="1234", pod_uid=UID + "16", rank="5")
        checks.equal("command", "left.py", labels["command"].split()[-1])
        with open(f"/proc/{process.pid}/stat") as file:
            checks.equal("state", "Z", file.read().rsplit(")", 1)[1].split()[0])
        process.process.kill()
        check_goes_on(case, agent)
