# SPDX-License-Identifier: MIT
"""Stacks of Python programs, for each Python 3.9 to 3.13 that this machine has: functions and lines in their order,
between the native frames. See tests/programs/frames.py."""

import collections
import contextlib
import glob
import os
import re
import shutil
import subprocess

import checks
import profiles
from harness import Failure, Places, Skip

CHAINS = {
    "methods": ("methods", "Model.step", "Layer.scale"),
    "in_lambda": ("in_lambda", "in_lambda.<locals>.<lambda>"),
    "generators": ("generators", "outer_generator", "inner_generator"),
    "deep": ("deep", *["recursion"] * 61),
    "by_key": ("by_key", "key", "compare"),
    "by_ctypes": ("by_ctypes", "compare"),
    "coroutines": ("coroutines", "outer_coroutine", "inner_coroutine"),
    "decorated": ("wrapped.<locals>.wrapper", "decorated"),
    "größe": ("größe",),
    "reduced": ("reduced", "compare"),
    "without_the_lock": ("without_the_lock",),
    "raising": ("raising",),
    "threads": ("in_thread",),
}
# Of those the code is C, and stands between two functions of Python.
BETWEEN = (("by_key", "key"), ("by_ctypes", "compare"), ("reduced", "compare"))


def script():
    return os.path.join(Places.root, "tests/programs/frames.py")


def marked_lines():
    """From what stands behind "at" in a comment to the number of its line."""
    lines = {}
    with open(script()) as file:
        for number, text in enumerate(file, 1):
            for name in re.findall(r"# at (.*)", text):
                for one in name.split(" and "):
                    lines[one] = number
    return lines


def last_name(name):
    """Until 3.10 code objects have no name but this."""
    return name.rpartition(".")[2]


def of_script(stack):
    return [frame for frame in stack if os.path.basename(frame.file) == "frames.py"]


def check_chain(stack, lines, version):
    """Which chain a stack is of, whether it is there in full; None where it is of none, or a frame or line is wrong."""
    frames = of_script(stack)
    names = [last_name(frame.name) if version < 11 else frame.name for frame in frames]
    if names[:2] == ["<module>", "main"]:
        if frames[0].line != lines["<module>"]:
            return None
        frames, names = frames[2:], names[2:]
    for what, chain in CHAINS.items():
        wanted = [last_name(name) for name in chain] if version < 11 else list(chain)
        if not names or names[0] != wanted[0]:
            continue
        leaf = [] if what == "without_the_lock" else ["spin"]
        if names != (wanted + leaf)[:len(names)]:
            return None
        whole = len(names) == len(wanted + leaf)
        for i, frame in enumerate(frames[:len(wanted)]):
            last = i == len(names) - 1
            marks = {lines.get(last_name(chain[i])), lines.get(chain[i]), lines.get(chain[i] + " end")}
            if not last and frame.line not in marks:
                return None
        return what, whole
    return None


def natives_between(stack, outer, inner):
    names = [last_name(frame.name) for frame in stack]
    files = [frame.file for frame in stack]
    for i in range(len(names)):
        if names[i] == outer and files[i].endswith("frames.py"):
            rest = [(n, f) for n, f in zip(names[i + 1:], files[i + 1:])]
            for k, (name, file) in enumerate(rest):
                if file.endswith("frames.py"):
                    return k if name == inner else None
    return None


def compare(profile, version):
    lines = marked_lines()
    whole, beginning, wrong = collections.Counter(), 0, collections.Counter()
    for stack, n in profile.stacks.items():
        names = [frame.name for frame in stack]
        found = check_chain(stack, lines, version)
        if found and found[1]:
            whole[found[0]] += n
            for outer, inner in BETWEEN:
                if outer == found[0] and not natives_between(stack, outer, inner):
                    raise Failure(f"nothing native between {outer} and {inner}: {names}")
            if "_PyEval_EvalFrameDefault" in names:
                raise Failure(f"the evaluator stands beside what it evaluates: {names}")
        elif found or not of_script(stack) or [f.name for f in of_script(stack)] in (
                ["<module>", "main"], ["<module>", "main", "threads"], ["<module>"]):
            beginning += n
        else:
            wrong[tuple(f"{frame.name}:{frame.line}" for frame in of_script(stack))] += n
    checks.equal("chains that were seen", sorted(CHAINS), sorted(whole))
    if profile.samples < 500:
        raise Failure(f"{profile.samples} samples only")
    if sum(wrong.values()) > 0.005 * profile.samples or beginning > 0.1 * profile.samples:
        raise Failure(f"of {profile.samples} samples {sum(wrong.values())} have other frames or lines, {beginning} are "
                      f"between the chains: {wrong.most_common(4)}; {profile.said()}")
    checks.contains("the whole ones", r"all \d+ stacks whole|99\.[5-9] % of", profile.said())


def of_python(case, python, version):
    process = profiles.started(case, python, script())
    profile = profiles.take(case, ["-p", process.pid], seconds=4)
    profiles.ended(process)
    compare(profile, version)


def minor_of(python):  # None: it cannot be run
    text = subprocess.run([python, "-c", "import sys; print(sys.version_info.minor)"], capture_output=True, text=True,
                          check=False).stdout
    return int(text) if text.strip().isdigit() else None


def find(minor):
    """Also those of pyenv, one folder each: what stands for them in the path may run another one."""
    for python in [shutil.which(f"python3.{minor}"), *sorted(glob.glob(os.path.expanduser(
            f"~/.pyenv/versions/3.{minor}.*/bin/python3")))]:
        if python and minor_of(python) == minor:
            return os.path.realpath(python)
    raise Skip(f"no Python 3.{minor} on this machine")


def test_profile_python_of_the_system(case):
    python = "/usr/bin/python3"
    version = os.path.exists(python) and minor_of(python)
    if not version or not 9 <= version <= 14:
        raise Skip("no Python 3.9 to 3.14 as /usr/bin/python3")
    of_python(case, python, version)


def test_profile_python_3_9(case):
    of_python(case, find(9), 9)


def test_profile_python_3_10(case):
    of_python(case, find(10), 10)


def test_profile_python_3_11(case):
    of_python(case, find(11), 11)


def test_profile_python_3_12(case):
    of_python(case, find(12), 12)


def test_profile_python_3_13(case):
    of_python(case, find(13), 13)


def test_profile_python_3_14(case):
    of_python(case, find(14), 14)


def pythons():
    """Of each version that is read, the first that this machine has."""
    found = {}
    for minor in range(9, 15):
        with contextlib.suppress(Skip):
            found[minor] = find(minor)
    if not found:
        raise Skip("no Python 3.9 to 3.14 on this machine")
    return found


def test_profile_python_that_waits_from_its_first_moments_on(case):
    """A program is looked at when it begins, before its Python does, and may map nothing new from then on."""
    for minor, python in pythons().items():
        path = case.path(f"wait{minor}.folded")
        process = case.cuscope("profile", "--mode", "off-cpu", "-o", path, "--", python,
                               os.path.join(Places.root, "tests/programs/condition_wait.py"))
        checks.equal(f"the status of 3.{minor}", 0, process.wait())
        waits = [chain for chain, ns in profiles.folded(path).items() if ns > 800e6]
        names = [[last_name(name.partition(" (")[0]) for name in chain if ".py" in name] for chain in waits]
        if ["<module>", "first", "second", "third", "fourth", "wait"] not in names:
            raise Failure(f"3.{minor}: nobody waits in a condition, but in {waits}")
        checks.equal(f"frames that have no name in 3.{minor}", [],
                     [chain for chain in waits if "[unknown]" in chain])


def test_profile_python_at_the_depth_that_it_allows(case):
    """A thousand functions within each other are Python's own limit; from 3.11 on they need no native frames."""
    for minor, python in pythons().items():
        if minor < 11:
            continue
        process = profiles.started(case, python, os.path.join(Places.root, "tests/programs/deep.py"), 950)
        profile = profiles.take(case, ["-p", process.pid], name=f"deep{minor}")
        profiles.ended(process)
        inside = sum(n for names, n in profile.names().items() if "spin" in names)
        whole = sum(n for names, n in profile.names().items()
                    if names.count("dive") == 951 and "<module>" in names and "outermost" in names)
        if inside < 20 or whole < 0.95 * inside:
            raise Failure(f"3.{minor}: {whole} of {inside} are whole; {profile.said()}")


def test_profile_a_python_that_is_not_read(case):
    """3.8: its frames are native ones, which is said."""
    process = profiles.started(case, find(8), script())
    profile = profiles.take(case, ["-p", process.pid])
    profiles.ended(process)
    checks.contains("what is missing", "1 process.* run.* a Python whose frames are not read", profile.said())
    checks.equal("frames of Python", [], [f for stack in profile.stacks for f in stack if f.file.endswith(".py")])
    profiles.share_of(profile, lambda names: len(names) > 5 and any("PyEval" in name for name in names), 0.9)
