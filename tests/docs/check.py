#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the documentation to the program: options, commands, samples of what is printed, links.

    tests/docs/check.py build/cuscope
"""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import dead
import fields
import first_lines
import layers
import names
import picture

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def commands(cuscope):
    text = subprocess.run([cuscope, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) {2,}", text, re.M)


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def pages():
    found = ["README.md"] + [os.path.relpath(path, ROOT) for path in glob.glob(ROOT + "/docs/*.md")]
    return sorted(found)


def options_of_help(cuscope, command):
    """{"--pid": "--pid=PID[,PID]"}: long names, with their values, as --help lists them."""
    text = subprocess.run([cuscope, command, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^ {2,6}(?:-\S, )?(--[a-z][a-z-]*)(\S*)", text, re.M)
    return {name: name + value for name, value in listed}


def options_of_page(command):
    """The options in the first cells of the page's tables."""
    cells = re.findall(r"^\| (`-.*?) \|", read(f"docs/{command}.md"), re.M)
    listed = re.findall(r"`(?:-\S, )?(--[a-z][a-z-]*)(\S*?)`", " ".join(cells))
    return {name: name + value for name, value in listed}


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)


def check_options(cuscope, command):
    if not os.path.exists(os.path.join(ROOT, f"docs/{command}.md")):
        yield f"docs/{command}.md does not exist"
        return
    helped, paged = options_of_help(cuscope, command), options_of_page(command)
    if not helped:
        yield "--help lists no options"
    for name in sorted(helped.keys() | paged.keys()):
        if helped.get(name) != paged.get(name):
            yield f"--help has {helped.get(name, 'nothing')}, the page has {paged.get(name, 'nothing')}"


def check_lines(cuscope):
    """Command lines in blocks of code: `cuscope trace --option` must exist, but for what shows a mistake."""
    known = {command: options_of_help(cuscope, command) for command in commands(cuscope)}
    for page in pages():
        for line, answer in re.findall(r"^((?:\$ )?(?:sudo )?cuscope .*)\n(.*)", read(page), re.M):
            words = line.split(" -- ")[0].split("#")[0].split()
            words = words[words.index("cuscope") + 1:]
            if words and words[0] in known and "there is no option" not in answer:
                for word in words[1:]:
                    name = word.split("=")[0]
                    if name.startswith("--") and len(name) > 2 and name not in known[words[0]]:
                        yield f"{page}: {line.strip()}: there is no {name}"


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links():
    for page in pages():
        for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, path)):
                yield f"{page}: {target} does not exist"
            elif anchor and anchor not in anchors(path):
                yield f"{page}: {target}: no such heading"


def check_named_files():
    """A page that names a file of the sources or the tests, by its path or the end of it, names one that is there."""
    there = set()
    for folder in ("src", "tests", "bench", "examples"):
        for path in glob.glob(os.path.join(ROOT, folder, "**", "*.*"), recursive=True):
            parts = os.path.relpath(path, ROOT).split(os.sep)
            there.update("/".join(parts[i:]) for i in range(len(parts)))
    for page in pages() + sorted(os.path.relpath(path, ROOT) for path in glob.glob(ROOT + "/docs/results/*.md")):
        for path in re.findall(r"`([\w/.-]+\.(?:[ch]|py|sh)|(?:tests|bench)/[\w/.-]+\.\w+)`", prose(page)):
            if path not in there:
                yield f"{page}: {path} does not exist"


# What the pages call these traces is one of tests/golden; where it is several, one of them has to print the sample.
SAMPLES = {"run.cuscope": ("gpu",), "metrics.cuscope": ("metrics",), "kernel.cuscope": ("kernel",), "train.cuscope": ("plain", "gpu", "idle", "steady", "ranks", "stalls"),
           "loader.cuscope": ("host_waits", "host_line", "host_blocked", "host_busy", "host_sync", "host_small", "host_lost")}
SAMPLED = ("docs/export.md", "docs/info.md", "docs/report.md", "docs/timeline.md", "docs/why.md")


def samples():
    """(page, command line, lines) of each sample that is of a golden trace and writes no file."""
    for page in SAMPLED:
        for block in re.findall(r"^```\n(.*?)^```", read(page), re.M | re.S):
            for sample in re.split(r"^\$ ", block, flags=re.M)[1:]:
                line, *printed = sample.rstrip().split("\n")
                words = shlex.split(line, comments=True)
                named = [word for word in words if word in SAMPLES or word.startswith("tests/golden/")]
                if words[0] == "cuscope" and named and printed and not {"-o", "--output-dir"} & set(words):
                    yield page, words, printed


def is_printed(sample, printed):
    """Whether the lines of the sample are printed, with others only where it has '...'."""
    at, anywhere = 0, False
    for line in sample:
        if line.strip() == "...":
            anywhere = True
            continue
        if line not in printed[at:] or not anywhere and printed[at] != line:
            return False
        at, anywhere = printed.index(line, at) + 1, False
    return anywhere or at == len(printed)


def print_sample(cuscope, words, trace, with_errors):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
        for name in SAMPLES:
            shutil.copy(os.path.join(ROOT, "tests", "golden", trace + ".cuscope"), os.path.join(folder, name))
        done = subprocess.run([cuscope] + words[1:], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
    text = done.stdout + (done.stderr if with_errors else "")
    return [line.rstrip() for line in text.rstrip().split("\n")]


def check_samples(cuscope):
    seen = 0
    for page, words, sample in samples():
        seen += 1
        traces = next((SAMPLES[word] for word in words if word in SAMPLES), ("gpu",))
        errors = any(line.startswith("cuscope:") or line.startswith("cuscope " + words[1] + ":") for line in sample)
        if not any(is_printed(sample, print_sample(cuscope, words, trace, errors)) for trace in traces):
            yield f"{page}: this is not what '{shlex.join(words)}' prints"
    if seen < 12:
        yield f"only {seen} samples were found"


def members(value, path=""):
    """"gpus[].account[].cause" and the like: each member of an object, and of those in it."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield path + key
        yield from members(inner, path + key + ".")
    for inner in value if isinstance(value, list) else ():
        yield from members(inner, path.rstrip(".") + "[].")


def check_why(cuscope):
    """The members of the JSON of why are those in its page, and so are its causes."""
    page = read("docs/why.md")
    listed = set(re.findall(r"`([a-z_.\[\]]+)`", " ".join(re.findall(r"^\| (`.*?`) \|", page.split("### JSON")[1], re.M))))
    causes = set(re.findall(r"\[ACCOUNT_\w+\] = \{ \"(\w+)\"", read("src/account/cause_words.c"))) | {"rest"}
    told = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?`) \|", page.split("| cause | what the time is |")[1], re.M))))
    for cause in sorted(causes ^ told):
        yield f"docs/why.md: the cause {cause} is {'not there' if cause in causes else 'none'}"
    seen = set()
    for trace in glob.glob(os.path.join(ROOT, "tests", "golden", "*.cuscope")):
        done = subprocess.run([cuscope, "why", trace, "--format", "json"], capture_output=True, text=True)
        seen |= set(members(json.loads(done.stdout)))
    for name in sorted(seen):
        name = re.sub(r"^next\[\]", "first", name)
        for part in ("through", "place"):
            name = re.sub(rf"^.*\b{part}\[\]", f"gpus[].account[].{part}[]", name)
        if name not in listed and name != "first.gain":
            yield f"docs/why.md: the member {name} is not there"
    if len(seen) < 30:
        yield f"only {len(seen)} members were seen"


def check_picture(cuscope):
    """The picture in README.md is the one that this program's output draws."""
    if read("docs/timeline.svg") != picture.draw(cuscope):
        yield f"docs/timeline.svg: it was changed, or what it shows: tests/docs/picture.py {sys.argv[1]} > docs/timeline.svg"


def main():
    cuscope = os.path.abspath(sys.argv[1])
    checks = [(f"options of {command}", check_options(cuscope, command)) for command in commands(cuscope)]
    checks += [("command lines", check_lines(cuscope)), ("samples", check_samples(cuscope))]
    checks += [("picture", check_picture(cuscope)), ("members of why", check_why(cuscope))]
    checks += [("links", check_links()), ("named files", check_named_files())]
    checks += [("layers", layers.broken(ROOT)), ("first lines", first_lines.silent(ROOT))]
    checks += [("names of tests", names.unlike(ROOT)), ("dead functions", dead.dead(ROOT, os.path.dirname(cuscope)))]
    checks += [("planted dead functions", dead.blind()), ("fields of events", fields.broken(ROOT))]
    failed = 0
    for name, findings in checks:
        findings = list(findings)
        failed += bool(findings)
        for finding in findings or ["ok"]:
            print(f"{'FAIL: ' if findings else ''}{name}: {finding}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
