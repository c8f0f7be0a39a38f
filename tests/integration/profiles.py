# SPDX-License-Identifier: MIT
"""Takes profiles of programs, and reads them: each stack with its frames and how often it was seen.

The profile is read from its pprof file, which has everything: names, files, lines, addresses and,
as comments, what was missed.
"""

import collections
import contextlib
import gzip
import os
import re
import subprocess

import harness
from harness import Failure, Places, wait_until

Frame = collections.namedtuple("Frame", "name file line address")


def numbers(data):
    """Packed varints."""
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            values.append(value)
            value = shift = 0
    return values


def fields(data):
    """Fields of a message of protocol buffers as {number: [value, ...]}: numbers and bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        begin = at
        while data[at] & 128:
            at += 1
        at += 1
        return numbers(data[begin:at])[0]

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        elif key & 7:
            raise Failure(f"a field of type {key & 7}")
        found[key >> 3].append(value)
    return found


def number(message, field):
    return message[field][0] if message[field] else 0


class Profile:
    """`stacks`: from a tuple of frames, outermost first, to how many samples had it."""

    def __init__(self, path):
        with gzip.open(path) as file:
            profile = fields(file.read())
        texts = [text.decode(errors="replace") for text in profile[6]]
        functions = {number(f, 1): (texts[number(f, 2)], texts[number(f, 4)])
                     for f in map(fields, profile[5])}
        frames = {}
        for location in map(fields, profile[4]):
            lines = [fields(line) for line in location[4]]
            frames[number(location, 1)] = [Frame(*functions.get(number(line, 1), ("", "")), number(line, 2),
                                                 number(location, 3)) for line in lines] \
                or [Frame("", "", 0, number(location, 3))]
        self.stacks = collections.Counter()
        for sample in map(fields, profile[2]):
            chain = [frame for id in numbers(b"".join(sample[1])) for frame in frames[id]]
            self.stacks[tuple(reversed(chain))] += numbers(b"".join(sample[2]))[0]
        self.comments = [texts[number] for number in numbers(b"".join(c for c in profile[13] if isinstance(c, bytes)))
                         + [c for c in profile[13] if isinstance(c, int)]]
        self.samples = sum(self.stacks.values())

    def names(self):
        """The same by names alone."""
        names = collections.Counter()
        for stack, n in self.stacks.items():
            names[tuple(frame.name for frame in stack)] += n
        return names

    def said(self):
        return "\n".join(self.comments)


# Where the kernel begins in a stack.
ENTRY = re.compile(r"asm_|entry_|error_entry|ret_from_|paranoid_|el\dt?_|__irqentry|common_interrupt|exc_")


def user_side(names):
    """Without the frames of the kernel at its inner end."""
    for i, name in enumerate(names):
        if ENTRY.match(name):
            return names[:i]
    return names


def from_main(names, first="main"):
    """What is outside of main() is the C library's, whose names may be stripped."""
    return names[names.index(first):] if first in names else names


def without_how_whole(said):
    """Folded stacks have no place for how whole they are: a line of standard error has it."""
    return re.sub(r"^cuscope: \S+\.folded: (no stacks|.* whole.*)\n", "", said, flags=re.M)


def folded(path):
    """Chains of names with their ns (the file has microseconds): what options put at the outer end is here, and not in pprof's."""
    with open(path, errors="replace") as file:
        return {tuple(line.rpartition(" ")[0].split(";")): 1000 * int(line.rpartition(" ")[2]) for line in file}


def same_time(what, expected_ns, chains):
    """Of what a folded file has, in microseconds, each chain rounded."""
    if abs(expected_ns - sum(chains.values())) > 1000 * len(chains):
        raise harness.Failure(f"{what}: {sum(chains.values())} ns of {len(chains)} chains, should be {expected_ns}")


def take(case, target, seconds=1.0, hz=999, options=(), name="profile"):
    """Of processes that run; `target`: what chooses them."""
    path = case.path(name + ".pb.gz")
    process = case.cuscope("profile", "-F", hz, "--duration", f"{seconds * harness.patience:g}s", "-o", path,
                           "--force", *options, *target)
    status = process.wait()
    if status:
        raise Failure(f"status {status}: {(process.err() + process.out())[-600:]}")
    return Profile(path)


def take_of_spinning(case, target, seconds=1.0, hz=999, options=(), name="profile"):
    """Of processes that always run: until they have run for most of that time, beside whatever else does."""
    for longer in (1, 4, 16):
        profile = take(case, target, longer * seconds, hz, options, name)
        if profile.samples >= 0.7 * hz * seconds:
            break
    return profile


def processor_seconds(pids):
    """That processes have had; of those that are gone nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            total += sum(map(int, file.read().rpartition(") ")[2].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def started(case, *command, name=None, **options):
    """A program that says when it is ready."""
    process = case.start(*map(str, command), name=name, stdin=subprocess.PIPE, **options)
    wait_until(lambda: "ready" in process.out() or process.process.poll() is not None,
               f"{command[0]} to be ready")
    if process.process.poll() is not None:
        raise Failure(f"{command} ended with {process.process.returncode}: {process.err()}")
    return process


def ended(process, status=0):
    """Its input is over, and so is it."""
    process.process.stdin.close()
    got = process.wait()
    if got != status:
        raise Failure(f"{process.command} ended with {got}: {process.err()}")


def of_program(case, *command, seconds=1.0, options=(), hz=999):
    """A profile of a program, which always runs, from when it was ready on."""
    process = started(case, Places.program(command[0]), *command[1:])
    profile = take_of_spinning(case, ["-p", process.pid], seconds, hz, options)
    ended(process)
    return profile


def share_of(profile, is_right, least=0.995, few=None):
    """Of the samples at least that share is right; says what the others are."""
    few = few or (100 if harness.patience == 1 else 20)
    right = sum(n for names, n in profile.names().items() if is_right(names))
    if profile.samples < few:
        raise Failure(f"{profile.samples} samples only: {profile.said()}")
    if right < least * profile.samples:
        wrong = collections.Counter({names: n for names, n in profile.names().items() if not is_right(names)})
        raise Failure(f"{right} of {profile.samples} samples are right, others are: " + "; ".join(
            f"{n} {';'.join(names)}" for names, n in wrong.most_common(4)) + f"; {profile.said()}")


def chain_is(profile, *chain, least=0.995):
    """The chain from main() on; None stands for any name: of a stripped library."""
    def right(names):
        names = from_main(user_side(names))
        return len(names) == len(chain) and all(a == b or b is None for a, b in zip(names, chain))
    share_of(profile, right, least)
