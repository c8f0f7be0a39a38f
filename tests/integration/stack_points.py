# SPDX-License-Identifier: MIT
"""What tests/programs/stackpoints.cc wrote down of its stacks, and what else was seen of them: frame by frame.

A frame is (file, offset in it) of the call that it was in, or of where it was interrupted.
"""

import collections
import json
import os

Point = collections.namedtuple("Point", "way frames")
Seen = collections.namedtuple("Seen", "whole ends_at frames names")

OWN = 1  # point() itself is at another call when it allocates than when it looks at its stack


class Maps:
    def __init__(self, lines):
        self.ranges = []
        for line in lines:
            words = line.split(None, 5)
            begin, end = (int(word, 16) for word in words[0].split("-"))
            name = os.path.basename(words[5].strip()) if len(words) > 5 else "[anon]"
            self.ranges.append((begin, end, int(words[2], 16), name))

    def place(self, address):
        for begin, end, offset, name in self.ranges:
            if begin <= address < end:
                return name, 0 if name.startswith("[") else address - begin + offset
        return "", 0


def own(path):
    """{number: Point}, and the Maps of the program."""
    with open(path) as file:
        lines = file.read().splitlines()
    end = lines.index("maps")
    maps, points = Maps(lines[end + 1:]), {}
    for line in lines[:end]:
        number, way, *addresses = line.split()
        points[int(number)] = Point(way, [maps.place(int(address, 16)) for address in addresses[OWN:]])
    return points, maps


def of_cuscope(path):
    """{number: Seen} of a recording that was exported as jsonl: the number is the allocation's size."""
    stacks, seen = {}, {}
    with open(path) as file:
        for event in map(json.loads, file):
            if event["type"] == "stack":
                frames = [f for f in event["frames"] if not f.get("inlined")][1 + OWN:]
                places = [(f.get("module", ""), int(f.get("offset", "0"), 16)) for f in frames]
                stacks[event["stack"]] = Seen(event["whole"], event.get("ends_at"), places,
                                              [f.get("function") for f in frames])
            elif event.get("name") == "cuMemAlloc_v2" and "stack" in event:
                seen[event["size"]] = stacks[event["stack"]]
    return seen


def of_gdb(path, maps):
    """{number: frames} of what gdb_points.py wrote. The innermost one, of where it stops, is left out."""
    with open(path) as file:
        lines = [line.split() for line in file]
    return {int(line[0]): [maps.place(int(address, 16)) for address in line[2 + OWN:]] for line in lines}


def differs_by_gdb(point, frames):
    """Stacks of makecontext() have no end for gdb: it goes on where the others have stopped."""
    return (frames[:len(point.frames)] if point.way == "context" else frames) != point.frames


def difference(point, seen):
    """'' where all frames are the same and the stack is whole; else what is not."""
    if seen is None:
        return "no stack"
    same = len(os.path.commonprefix([point.frames, seen.frames]))
    if point.frames == seen.frames:
        return "" if seen.whole else "not whole"
    return (f"frame {same} of {len(point.frames)} is {(seen.frames + [None])[same]} and not "
            f"{(point.frames + [None])[same]}")


class Comparison:
    """`right` and `points` by way, and the first differences."""

    def __init__(self, points, seen):
        self.points, self.right, self.frames, self.wrong = collections.Counter(), collections.Counter(), 0, []
        for number, point in sorted(points.items()):
            what = difference(point, seen.get(number))
            self.points[point.way] += 1
            self.right[point.way] += not what
            self.frames += len(point.frames)
            if what:
                self.wrong.append(f"{point.way} {number}: {what}")

    def share(self):
        return 100 * self.right.total() / max(1, self.points.total())
