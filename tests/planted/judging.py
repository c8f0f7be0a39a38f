# SPDX-License-Identifier: MIT
"""What is to be said of programs with planted problems, and whether an answer of `cuscope why` says it."""

import json
import re

# Words of advice that fit small kernels and nothing else here.
SMALL = ("larger launches", "CUDA graph", "fewer launches")
LAUNCH = "cuLaunchKernel=4"
LINES = 15
GAIN_WITHIN = 0.2
NEEDED = {"one": 0.95, "two": 0.8, "healthy": 1, "gain": 0.8, "diff": 0.8}


class Kind:
    """`causes`: the JSON's words of which any is right. `names`: functions of which one must be in the first paragraph;
    `second`: the same two of the other problem, where there are two. `never`: words that must not be there. `apart`: each of its two processes
    is recorded by itself, and asked of together. `contained`: it has a root and numbers of processes of its own. `costs`: what
    calls take, in microseconds. `realtime`: it sleeps so shortly and often that on a machine with other work it would mostly
    wait for a CPU. `spin`: the driver waits as a real one does (SIMCUDA_AT_WAITS). `says`: what the answer begins with where there is neither problem nor health. `bound`: what may bound the
    kernels. `script`: which file of Python's it is in. `ranks`: so many processes that are started by themselves."""

    def __init__(self, name, causes=(), names=(), never=SMALL, costs=LAUNCH, second=None, attach=False, apart=False, contained=False, beside=None, options=(),
                 program=None, gain=True, realtime=False, says=None, bound=(), spin=False, script="planted.py", ranks=1):
        self.name, self.causes, self.names, self.never = name, split(causes), split(names), never
        self.second = second and (split(second[0]), split(second[1]))
        self.attach, self.apart, self.beside, self.options, self.gain = attach, apart, beside, options, gain
        self.realtime, self.says, self.bound = realtime, says, split(bound)
        self.contained, self.script, self.ranks = contained, script, ranks
        self.program = program or name
        self.env = {"SIMCUDA_CALL_US": costs, **({"SIMCUDA_AT_WAITS": "1"} if spin else {})}

    @property
    def healthy(self):
        return not self.causes

    @property
    def counts_as(self):
        return "healthy" if self.healthy else "two" if self.second else "one"

    @property
    def python(self):
        return self.program.startswith(("py_", "two_py_"))


def split(words):
    return tuple(words.split()) if isinstance(words, str) else tuple(words)


class Answer:
    """What `why` said: its text, and the object that it prints as JSON."""

    def __init__(self, text, said):
        self.text, self.json = text, json.loads(said)
        found = re.search(r"^(Change first|Nothing is wrong)[:.].*?(?=^Next:|\Z)", self.text, re.M | re.S)
        self.paragraph = " ".join(found.group(0).split()) if found else ""
        self.next = " ".join(line for line in self.text.splitlines() if line.startswith("Next:"))

    @property
    def first(self):
        return self.json.get("first")

    @property
    def predicted(self):
        """How many times as fast it says that the program can be."""
        return ((self.first or {}).get("gain") or {}).get("factor") or 1


def shape_wrongs(answer):
    """What is wrong with any answer."""
    lines = answer.text.count("\n")
    sums = [sum(part["percent"] for part in gpu["account"]) for gpu in answer.json["gpus"]]
    return [("shape", f"{lines} lines")] * (lines > LINES) + [
        ("shape", f"{total:.1f} % in all") for total in sums if abs(total - 100) > 0.5]


def wrongs(kind, answer):
    """What is not as it should be, by what it counts as: shape, cause, line, words or second."""
    return shape_wrongs(answer) + kind_wrongs(kind, answer)


def healthy_wrongs(kind, answer):
    if answer.first or "Nothing is wrong" not in answer.paragraph:
        return [("cause", answer.paragraph or answer.text[:160] or "no paragraph")]
    bound = answer.json.get("kernels_bound_by")
    return [("words", f"bound by {bound}")] if kind.bound and bound not in kind.bound else []


def kind_wrongs(kind, answer):
    if kind.says:
        return [] if answer.text.startswith(kind.says) and not answer.first else [("cause", answer.text[:160])]
    if kind.healthy:
        return healthy_wrongs(kind, answer)
    if not answer.first:
        return [("cause", "nothing is wrong, it says"), ("line", "none")]
    found = []
    if answer.first["cause"] not in kind.causes:
        found.append(("cause", answer.first["cause"]))
    if not any(name in answer.paragraph for name in kind.names):
        found.append(("line", answer.paragraph[:160]))
    found += [("words", word) for word in kind.never if word.lower() in answer.paragraph.lower()]
    if kind.second:
        causes, names = kind.second
        right = [other for other in answer.json.get("next", []) if other["cause"] in causes]
        if not right or not any(name in answer.next for name in names):
            found.append(("second", answer.next[:160]))
    return found


def diff_wrongs(kind, verdict):
    """A step takes more, and the place of the problem is in what it takes more of."""
    more = " ".join(re.findall(r"[:;] \+[^;]*", verdict))
    right = re.search(r"a step takes [\d.]+ \w+ more", verdict) and any(name in more for name in kind.names)
    return [] if right else [("diff", verdict[:300])]


def step_us(text, word="steps"):
    """What a program said of its steps."""
    found = re.search(rf"^{word} \d+ step_us (\d+)", text, re.M)
    if not found:
        raise ValueError(f"no time of a step in {text[-300:]}")
    return float(found.group(1))


def gain_is_near(predicted, measured):
    return abs(predicted / measured - 1) <= GAIN_WITHIN


class Score:
    def __init__(self):
        self.right = {}
        self.of = {}

    def add(self, name, right):
        self.right[name] = self.right.get(name, 0) + bool(right)
        self.of[name] = self.of.get(name, 0) + 1

    def add_answer(self, kind, found):
        self.add(kind.counts_as, not found)
        for what in () if kind.healthy else ("cause", "line"):
            self.add(what, not any(name == what for name, _ in found))

    def failed(self):
        return sum(self.right[name] / of < NEEDED.get(name, 0) for name, of in self.of.items())

    def lines(self):
        """The closing lines of a part of the suite: a share that has to be reached is a test."""
        for name, of in self.of.items():
            share = self.right[name] / of
            yield f"{'FAIL: ' if share < NEEDED.get(name, 0) else ''}{name}: {self.right[name]} of {of} ({share:.0%})"
        yield f"{len(self.of) - self.failed()} passed, {self.failed()} failed"

    def end(self):
        print("\n".join(self.lines()))
        return 1 if self.failed() else 0
