# SPDX-License-Identifier: MIT
"""Manual pages: made of every page of docs/ that is for users, and without a warning of two formatters."""

import glob
import os
import re
import shutil
import subprocess

from check import Skipped

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NO_MANUAL = {"bounds.md", "comparison.md", "decisions.md", "design.md", "install.md", "missed.md"}
# Of paper alone: a row of a table that is longer than a page.
HARMLESS = ("table text block will not fit on one page",)


def make(build, *targets):
    """The sub-make that the tests were started by has the flags and the compiler."""
    done = subprocess.run([os.environ.get("MAKE", "make"), "-s", f"B={os.path.relpath(build, ROOT)}", *targets], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    return done.stdout


def pages(build):
    if not shutil.which("pandoc"):
        raise Skipped("pandoc is not installed")
    make(build, "man")
    return sorted(glob.glob(os.path.join(build, "man", "*.[1-8]")))


def text_of(page):
    """As man shows it, without bold and underlined."""
    done = subprocess.run(["man", "-E", "UTF-8", "-l", page], capture_output=True, text=True, check=True,
                          env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": "", "MANPAGER": "cat"})
    return re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


def words_of(text):
    return re.sub(r"[\W_]+", " ", text.replace("‐\n", "").replace("‐", "-"))


def test_manual_has_every_page_for_users(build):
    with open(os.path.join(ROOT, "packaging", "manual", "pages"), encoding="utf-8") as table:
        listed = re.findall(r"^docs/(\S+)\s+cuscope-(\S+)\s+(\d)", table.read(), re.M)
    there = {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "docs", "*.md"))}
    assert {file for file, _, _ in listed} == there - NO_MANUAL, "packaging/manual/pages and docs/ differ"
    text = subprocess.run([os.path.join(build, "cuscope"), "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([a-z]+) {2,}", text, re.M))
    assert commands == {name for _, name, section in listed if section == "1"}
    assert len(pages(build)) == len(listed) + 1


def test_manual_pages_are_sound(build):
    bad = []
    for page in pages(build):
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
            bad += done.stdout.splitlines() + done.stderr.splitlines()
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True, check=False,
                              env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFSEQ": ""})
        bad += [f"{page}: {line}" for line in done.stderr.splitlines() if not line.endswith(HARMLESS)]
    assert not bad, "\n".join(bad[:10])


def test_manual_pages_can_be_found_by_what_they_are_about(build):
    for page in pages(build):
        name = os.path.basename(page)[:-2]
        done = subprocess.run(["lexgrog", page], capture_output=True, text=True, check=False)
        assert re.search(rf': "{name} - \w+ \w+', done.stdout), done.stdout + done.stderr


def test_manual_has_what_the_page_has(build):
    """Every option of a command stands at the margin, and every word of a paragraph is there."""
    pages(build)
    for command in ("trace", "report", "top", "doctor"):
        shown = text_of(os.path.join(build, "man", f"cuscope-{command}.1"))
        helped = subprocess.run([os.path.join(build, "cuscope"), command, "--help"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"^ {2,6}(?:-\S, )?(--[a-z][a-z-]*)", helped, re.M):
            assert re.search(rf"^ {{7}}(?!\$).*{option}\b", shown.replace("‐", "-"), re.M), f"{command}: no {option}"
    with open(os.path.join(ROOT, "docs", "security.md"), encoding="utf-8") as file:
        plain = re.sub(r"\]\([^)]*\)|[`*\[\]|#]", " ", re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S))
    shown = words_of(text_of(os.path.join(build, "man", "cuscope-security.7")))
    missing = [word for word in set(words_of(plain).split()) if word not in shown]
    assert len(missing) < 5, missing


def test_manual_pages_name_the_pages_that_they_link_to(build):
    pages(build)
    shown = text_of(os.path.join(build, "man", "cuscope-record.1"))
    also = shown[shown.index("SEE ALSO"):]
    for name in ("cuscope(1)", "cuscope-trace(1)", "cuscope-trace-format(5)", "cuscope-in-process(7)"):
        assert name in re.sub("‐\n *", "", also).replace("-\n       ", "-"), also
    for page in pages(build):
        for name, section in re.findall(r"\\f\[B\](cuscope[\w-]*)\\f\[R\]\((\d)\)", open(page, encoding="utf-8").read()):
            assert os.path.exists(os.path.join(build, "man", f"{name}.{section}")), f"{page} names {name}({section})"
