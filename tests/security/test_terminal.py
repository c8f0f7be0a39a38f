# SPDX-License-Identifier: MIT
"""Names that other users choose: none of their bytes is obeyed by root's terminal."""

import os
import shutil
import subprocess

import checks
from harness import Failure, Places, wait_until

HOSTILE = "e\x1b[31mv\x9bil\x07"  # colours, a C1 control, a bell; of a name's 15 bytes none is lost
FOLDER = "lib\x1b[2Jowned\x07\nall is well\x1b[1m"  # without what divides LD_LIBRARY_PATH


def harmless(what, data):
    """Bytes that a terminal prints: no control but tabs and ends of lines, no C1 control, valid UTF-8."""
    text = data.decode("utf-8")  # raises where it is none
    bad = sorted({repr(c) for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0})
    if bad:
        at = next(i for i, c in enumerate(text) if repr(c) in bad)
        raise Failure(f"{what}: {' '.join(bad)} in {text[max(0, at - 60):at + 40]!r}")
    if any(line.startswith("all is well") for line in text.splitlines()):
        raise Failure(f"{what}: a line of somebody else's")
    return text


def said(case, *arguments, env=None, status=0):
    """Standard output and error of a command, as bytes."""
    process = subprocess.run([Places.cuscope(), *arguments], capture_output=True, timeout=60,
                             stdin=subprocess.DEVNULL, env=env or case.environment())
    if status is not None:
        checks.equal(f"status of {arguments[0]} ({process.stderr[-300:]})", status, process.returncode)
    return harmless(" ".join(arguments[:3]), process.stdout + process.stderr)


def hostile_program(case, program="loop"):
    """A program and its libraries whose names and paths are hostile; what starts it, and with what."""
    folder = os.path.join(case.folder, FOLDER)
    os.makedirs(folder)
    copy = os.path.join(folder, HOSTILE)
    shutil.copy(Places.program(program), copy)
    for library in ("libcuda.so.1",):
        shutil.copy(Places.simcuda("push", library), os.path.join(folder, library))
    env = case.environment()
    env["LD_LIBRARY_PATH"] = folder + ":" + env["LD_LIBRARY_PATH"]
    return copy, env


def test_names_of_a_target_are_harmless_in_every_command(case):
    program, env = hostile_program(case)
    command = ["--", program, "1", "100"]
    for form in ("table", "log", "csv", "jsonl"):
        text = said(case, "trace", "--format", form, *command, env=env)
        checks.contains(form, "." if form == "log" else r"e\\+(x1b|u001b)\[31mv", text)
    said(case, "trace", "--summary-only", *command, env=env)
    recorded = case.path("trace.cuscope")
    said(case, "record", "-o", recorded, *command, env=env)
    for arguments in (["info", recorded], ["info", "--json", recorded], ["timeline", recorded],
                      ["report", recorded], ["report", recorded, "overview"], ["why", recorded], ["diff", recorded, recorded],
                      ["report", recorded, "cuda_api_trace", "processes", "summary"],
                      ["export", recorded, "--format", "table"]):
        said(case, *arguments)
    for form in ("csv", "json"):
        said(case, "report", recorded, "processes", "--format", form)
    for tool in ("memleak", "launches", "bandwidth"):
        for form in ("table", "json", "classic"):
            said(case, tool, "--once", "--interval", "500ms", "--format", form, *command, env=env)
    for form in ("text", "json"):
        said(case, "top", "--once", "--interval", "500ms", "--format", form, *command, env=env)


def test_names_of_files_are_harmless(case):
    program, env = hostile_program(case)
    folder = os.path.dirname(program)
    library = os.path.join(folder, "libcuda.so.1")
    checks.contains("probes", r"lib\\x1b\[2Jowned\\x07\\x0aall is well", said(case, "probes", library))
    running = case.start(program, "20", "100", env=env, stdin=subprocess.PIPE, name="running")
    wait_until(lambda: "ready" in running.out(), "the program to begin")
    checks.contains("probes of a process", r"lib\\x1b\[2Jowned",
                    said(case, "probes", "-p", str(running.pid)))
    broken = os.path.join(folder, "broken")
    with open(broken, "wb") as file:
        file.write(b"\x7fELF" + b"\0" * 100)
    for arguments in (["probes", broken], ["info", broken], ["report", broken],
                      ["export", broken, "--format", "csv"], ["timeline", broken],
                      ["record", "-o", os.path.join(folder, "no", "such"), "--", "true"],
                      ["trace", "--json-summary", folder, "--", "true"],
                      ["trace", "--format", "csv", "-o", broken, "--", "true"]):
        text = said(case, *arguments, status=None)
        checks.contains(f"{arguments[0]} names the file", r"lib\\x1b\[2Jowned\\x07", text)


def test_a_trace_file_of_somebody_else_is_harmless(case):
    """Names of functions, kernels, threads, ranges, the command and the host: all of them are hostile."""
    golden = os.path.join(Places.root, "tests", "golden")
    subprocess.run(["make", "-s", "-C", Places.root, f"{os.path.relpath(Places.build, Places.root)}/tests/export/edges"],
                   check=True, stdout=subprocess.DEVNULL)
    edges = case.path("edges.cuscope")
    subprocess.run([os.path.join(Places.build, "tests", "export", "edges"), edges], check=True)
    for trace in (edges, *(os.path.join(golden, f"{name}.cuscope") for name in ("gpu", "ranges"))):
        for form in ("table", "log", "csv", "jsonl", "chrome", "svg"):
            said(case, "export", trace, "--format", form)
        reports = [line.split()[0] for line in said(case, "report", "--help").splitlines()
                   if line.startswith("  ") and line.split()[0].replace("_", "").isalnum()]
        for form in ("table", "csv", "json"):
            for report in ("cuda_api_sum", "cuda_api_trace", "cuda_gpu_trace", "cuda_kern_exec_sum",
                           "processes", "threads", "memory", "errors", "nvtx_sum", "slowest", "gaps"):
                if report in reports:
                    said(case, "report", trace, report, "--format", form, status=None)
        for arguments in (["info", trace], ["info", "--json", trace], ["timeline", trace],
                          ["report", trace, "overview"], ["why", trace], ["why", trace, "--format", "json"],
                          ["report", trace, "overview", "--format", "csv"], ["report", trace, "summary"],
                          ["report", trace, "summary", "--format", "json"], ["diff", trace, trace]):
            said(case, *arguments)
