# SPDX-License-Identifier: MIT
"""Targets by what people call them: --rank, --job, --container, --pod, --gpu-of."""

import json
import os
import shutil
import subprocess

import checks
from harness import Failure, Places, wait_until


def start(case, name, **more):
    program = case.program("loop", 20000, 500, stdin=subprocess.PIPE, name=name, env=dict(case.environment(name), **more))
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    return program


def traced(case, *options, status=0):
    """The processes that had a call."""
    path = case.path("trace.jsonl")
    done = case.cuscope("trace", "-o", path, "--force", "--duration", "700ms", *options)
    checks.equal(f"status with {options}: {done.err()}", status, done.wait())
    if status:
        return done.err()
    with open(path) as lines:
        return {json.loads(line).get("pid") for line in lines if '"layer":"driver"' in line}


def test_whose_rank_and_job(case):
    """What several options say has to fit together."""
    job = str(os.getpid())
    ranks = [start(case, f"rank{rank}", RANK=str(rank), SLURM_JOB_ID=job) for rank in range(2)]
    other = start(case, "other", RANK="1")
    checks.equal("rank 1 of the job", {ranks[1].pid}, traced(case, "--rank", "1", "--job", job))
    checks.equal("the job", {one.pid for one in ranks}, traced(case, "--job", job))
    if other.pid not in traced(case, "--rank", "1"):
        raise Failure("another process of rank 1 is not traced")
    for one in (*ranks, other):
        one.process.stdin.close()
        one.wait()


def test_whose_gpu(case):
    one, other = start(case, "one", RANK="7"), start(case, "other")
    case.env = {"LD_LIBRARY_PATH": Places.libraries() + ":" + os.path.join(Places.build, "simnvml"), "SIMNVML_GPUS": "2",
                "SIMNVML_PID": str(one.pid)}
    checks.equal("who uses GPU 1", {one.pid}, traced(case, "--gpu-of", "1"))
    checks.equal("as rank 7", {one.pid}, traced(case, "--gpu-of", "0", "--rank", "7"))
    for wrong, says in ((("--gpu-of", "2"), "there is no GPU 2: there are 2, from 0 on"),
                        (("--gpu-of", "GPU-nobody"), "there is no GPU GPU-nobody"),
                        (("--gpu-of", "0", "--rank", "8"), "no process of rank 8 on GPU 0 is there")):
        said = traced(case, *wrong, status=2)
        if says not in said:
            raise Failure(f"{wrong}: {said}")
    for program in (one, other):
        program.process.stdin.close()
        program.wait()


def test_whose_gpu_of_which_not_all_are_told(case):
    """The driver tells of 512 processes, and of none where there are more: nobody is said to be all."""
    one = start(case, "one")
    case.env = {"LD_LIBRARY_PATH": Places.libraries() + ":" + os.path.join(Places.build, "simnvml"), "SIMNVML_GPUS": "2",
                "SIMNVML_FILE": case.path("gpu")}

    def tell(text):
        with open(case.path("gpu"), "w", encoding="ascii") as file:
            file.write(text)
    for wanted in ("0", "1"):  # of GPU 0 nobody is told, and the one of GPU 1 has no room
        tell(f"gpu0.processes {513 if wanted == '0' else 512}\ngpu0.pid 5000000\ngpu1.processes 1\ngpu1.pid {one.pid}\n")
        said = traced(case, "--gpu-of", wanted, status=2)
        if f"who uses GPU {wanted} is not known: the driver does not tell of all processes" not in said:
            raise Failure(said)
    tell(f"gpu0.processes 513\ngpu1.processes 1\ngpu1.pid {one.pid}\n")
    done = case.cuscope("trace", "-o", case.path("some.jsonl"), "--duration", "100ms", "--gpu-of", "1")
    checks.equal("status", 0, done.wait())
    checks.contains("what is said", "there may be more processes that use GPU 1", done.err())
    one.process.stdin.close()
    one.wait()


def test_whose_others_that_cannot_be_traced(case):
    """Anybody can say that he is of a rank, and end, or be one that no probe may go to."""
    job = f"{os.getpid()}3"
    one = start(case, "one", RANK="3", SLURM_JOB_ID=job)
    os.makedirs(case.path("valgrind"))
    program = case.path("valgrind/sleep-amd64-linux")
    shutil.copy(shutil.which("sleep"), program)
    with subprocess.Popen([program, "60"], env={"RANK": "3", "SLURM_JOB_ID": job}) as other:
        for _ in range(2):
            checks.equal("the other one", {one.pid}, traced(case, "--rank", "3", "--job", job))
        other.kill()
    one.process.stdin.close()
    one.wait()


def test_whose_nobody(case):
    for wrong, says in ((("--rank", "31999"), "no process of rank 31999 is there"),
                        (("--job", "x" * 5000), "no process of job x"),
                        (("--container", "abc"), "no process of container abc is there"),
                        (("--pod", "a/b/c"), "no process of pod a/b/c is there"),
                        (("--pod", "\x1b[31m"), "no process of pod "),
                        (("--rank", ""), "want a name"),
                        (("--container", ""), "want a name"),
                        (("--pod", "/"), "want a name"),
                        (("--rank", "1", "--job", ""), "want a name"),
                        (("--rank", "1", "-p", str(os.getpid())), "with no other target"),
                        (("--rank", "1", "--", "true"), "give one kind of target")):
        said = traced(case, *wrong, status=2)
        if says not in said or "\x1b" in said:
            raise Failure(f"{wrong}: {said}")
