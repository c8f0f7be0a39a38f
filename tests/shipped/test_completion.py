# SPDX-License-Identifier: MIT
"""Completions: what is offered is what the program accepts, and real shells offer it."""

import os
import re
import subprocess
import sys

import shells

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TRACE = os.path.join(ROOT, "tests", "golden", "gpu.cuscope")
NOT_WORDS = {"--label-env", "--only", "--skip", "--function", "--env", "--name", "--pid"}  # anything may be given to these


def run(build, *words):
    return subprocess.run([os.path.join(build, "cuscope"), *words], capture_output=True, text=True, check=False)


def answer(build, *words):
    """[(candidate, what it is)] for the last of these words."""
    done = run(build, "completion", "words", *words)
    assert done.returncode == 0 and not done.stderr, f"{words}: status {done.returncode}, {done.stderr}"
    return [tuple((line + "\t").split("\t")[:2]) for line in done.stdout.splitlines()]


def offered(build, *words):
    return [word for word, _ in answer(build, *words)]


def commands(build):
    return [word for word in offered(build, "") if word != "help"]


def options_with_values(build, command):
    list_first = ("memleak,launches",) if command == "watch" else ()
    return [word for word in offered(build, command, *list_first, "--") if word.endswith("=")]


def test_completion_knows_the_commands_and_options_of_help(build):
    text = run(build, "--help").stdout
    assert commands(build) == re.findall(r"^  ([a-z]+) {2,}", text, re.M)
    for command in commands(build):
        listed = set(re.findall(r"^ {2,6}(?:-\S, )?(--[a-z][a-z-]*)", run(build, command, "--help").stdout, re.M))
        assert {word.rstrip("=") for word in offered(build, command, "--")} == listed, command


def test_completion_offers_only_values_that_are_accepted(build):
    tried = 0
    for command in commands(build):
        for option in options_with_values(build, command):
            values = [word for word in offered(build, command, option) if word.startswith("--")]
            for value in values if option.rstrip("=") not in NOT_WORDS else values[:3]:
                tried += 1
                done = run(build, command, *(["memleak"] if command == "watch" else []), value, "--help")
                assert done.returncode == 0, f"{command} {value}: {done.stderr}"
    assert tried > 150, f"only {tried} values were tried"


def test_completion_offers_all_values_that_a_message_names(build):
    """"there is no class 'zz9' (launch, memory, ... or other)": the words in brackets, and no others."""
    compared = 0
    for command in commands(build):
        for option in options_with_values(build, command):
            values = {word.split("=")[1] for word in offered(build, command, option) if word.startswith("--")}
            said = run(build, command, *(["memleak"] if command == "watch" else []), option + "zz9", "--help").stderr
            named = re.search(r"\(((?:[a-z-]+, )+[a-z-]+,?(?: or [a-z-]+)?|[a-z-]+ or [a-z-]+)\)", said)
            if named and values:
                compared += 1
                assert set(re.split(r", or |, | or ", named[1])) == values, f"{command} {option}: {said}: {sorted(values)}"
    assert compared > 20, f"only {compared} messages were compared"


def test_completion_offers_reports_that_there_are(build):
    names = offered(build, "report", "x", "") + offered(build, "report", "x", ":") + [
        name for report in offered(build, "report", "x", "") for name in offered(build, "report", "x", report + ":")]
    assert {"overview", "gaps", "cuda_api_sum:place", "cuda_gpu_kern_sum:base"} <= set(names), names
    done = run(build, "report", TRACE, *names, "--top", "1")
    assert done.returncode == 0, done.stderr
    assert offered(build, "diff", "a", "b", "c", "cuda_api_su") == ["cuda_api_sum"], "diff"


def test_completion_offers_tools_of_watch_and_only_their_options(build):
    assert offered(build, "watch", "memleak,la") == ["memleak,launches"]
    assert "--older=" in offered(build, "watch", "memleak", "--o")
    assert "--older=" not in offered(build, "watch", "launches", "--o")


def test_completion_stops_where_another_command_begins(build):
    assert answer(build, "trace", "--failed", "--", "./app", "--f") == [(":command", "2")]
    assert answer(build, "trace", "./app", "--f") == [(":command", "0")]
    assert answer(build, "watch", "memleak", "./app", "") == [(":command", "1")]
    assert "--from=" in offered(build, "profile", "run.cuscope", "--f")
    assert answer(build, "why", "-o", "x", "--", "./app", "--f") == [(":command", "3")]
    for words in (("",), ("a.cuscope", ""), ("a.trace", "b.trace", "")):
        assert answer(build, "why", *words) == [(":files", ".cuscope")], words
    assert "--force" in offered(build, "why", "a.trace", "--f")
    assert answer(build, "info", "") == [(":files", ".cuscope")]
    assert answer(build, "trace", "-o", "") == [(":files", "")]


def test_completion_of_nonsense_is_empty_and_no_failure(build):
    for words in ((), ("nothing", ""), ("trace", "--nothing=", ""), ("trace", "--nothing=x"), ("info", "a", "b", ""),
                  ("watch", "nothing", "--"), ("trace", "-p"), ("trace", "-"), ("completion", "x", ""), ("trace", "\0"[:0]),
                  ("trace", "--class=" + "," * 3000), ("report", "x" * 100000, "")):
        run_of = run(build, "completion", "words", *words)
        assert run_of.returncode >= 0 and not run_of.stderr, (words, run_of)
    assert run(build, "completion").returncode == 2
    assert "bash, zsh or fish" in run(build, "completion", "tcsh").stderr


class NamedProcess:
    """A process that calls itself what it wants."""

    def __init__(self, name):
        code = f"import ctypes, sys; ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0); print(flush=True); sys.stdin.read()"
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def __enter__(self):
        return str(self.process.pid)

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def test_completion_knows_processes(build):
    with NamedProcess(b"well.named-1") as pid:
        assert (pid, "well.named-1") in answer(build, "trace", "-p", "")
        assert "1," + pid in offered(build, "trace", "-p", "1,")
        assert "--name=well.named-1" in offered(build, "trace", "--name=well")


def test_completion_offers_no_name_that_a_shell_would_obey(build):
    for name in (b"$(touch x)", b"`id`", b"a;id", b"-rf", b"a\nb", b"\x1b[2J", b"a b", b"'", b"a\tb", b"~"):
        with NamedProcess(name) as pid:
            words = offered(build, "trace", "--name", "")
            bad = [word for word in words if not re.fullmatch(r"[A-Za-z0-9._+][A-Za-z0-9._+-]*", word)]
            assert not bad, f"{name!r} is offered: {bad}"
            text = dict(answer(build, "trace", "-p", pid)).get(pid)
            assert text is not None and text.isprintable(), f"{name!r} is shown as {text!r}"


# ---- the shells -------------------------------------------------------------------------------

# What is typed before TAB, and the words that stand there then.
TYPED = (
    ("cuscope ban", ["bandwidth"]),
    ("cuscope trace --dur", ["trace", "--duration="]),
    ("cuscope trace --format=js", ["trace", "--format=jsonl"]),
    ("cuscope trace --format js", ["trace", "--format", "jsonl"]),
    ("cuscope trace --class=launch,tr", ["trace", "--class=launch,transfer"]),
    ("cuscope report run.cuscope cuda_api_sum:p", ["report", "run.cuscope", "cuda_api_sum:place"]),
    ("cuscope info ru", ["info", "run.cuscope"]),
    ("cuscope export run.cuscope --output=oth", ["export", "run.cuscope", "--output=other.txt"]),
    ("cuscope watch memleak,ban", ["watch", "memleak,bandwidth"]),
    ("cuscope help doc", ["help", "doctor"]),
)
OTHER = ("cuscope trace --failed -- cat on", ["trace", "--failed", "--", "cat", "only.sh"])
FILES = ("run.cuscope", "runs.txt", "other.txt")


def check_typed(build, name):
    with shells.Shell(build, name, FILES) as shell:
        for typed, words in TYPED:
            found = shell.complete(typed, words)
            assert found == words, f"{name}: {typed!r}: {found}"
        listed = shell.shown("cuscope trace --col", "--color=|WHEN")
        assert "--color=" in listed
        listed = shell.shown("cuscope report run.cuscope cuda_gpu_", "cuda_gpu_trace")
        assert "cuda_gpu_kern_sum" in listed, listed


def test_completion_in_bash(build):
    check_typed(build, "bash")
    with shells.Shell(build, "bash", ("only.sh",)) as shell:
        assert shell.complete(*OTHER) == OTHER[1]


def test_completion_in_bash_without_bash_completion(build):
    check_typed(build, "plain bash")


def test_completion_in_zsh(build):
    check_typed(build, "zsh")
    with shells.Shell(build, "zsh", ("only.sh",)) as shell:
        assert shell.complete(*OTHER) == OTHER[1]


def test_completion_in_fish(build):
    for typed, words in TYPED:
        found = shells.fish(build, typed, FILES)
        assert words[-1] in found, f"fish: {typed!r}: {found}"
    assert "only.sh" in shells.fish(build, OTHER[0], ("only.sh",))
    assert "runs.txt" not in shells.fish(build, "cuscope info ru", FILES)


def test_completion_of_a_user_and_a_folder(build):
    assert "root" in shells.fish(build, "cuscope trace --user roo")
    assert answer(build, "report", "x", "--output-dir", "") == [(":folders", "")]
    assert answer(build, "trace", "--user", "") == [(":users", "")]
