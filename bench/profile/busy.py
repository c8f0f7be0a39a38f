# SPDX-License-Identifier: MIT
"""A busy thread of Python and native code for bench/profile/run: sorted(), re and json call back into Python.

Every 20 ms it says how far it is: the time, its iterations and how long it has waited for a CPU.
"""

import json
import re
import time

NUMBERS = list(range(200))


def weight(number):
    return number * 7919 % 1009


def sort_some():
    return sorted(NUMBERS, key=weight)


def replace(match):
    return match.group(0) + str(len(sort_some()))


def substitute():
    return re.sub("[a-c]", replace, "abc")


class Node:
    def __init__(self, depth):
        self.depth = depth


def encode(node):
    return [Node(node.depth - 1)] if node.depth else [substitute()]


def work():
    return json.dumps(Node(4), default=encode)


def waited_ns():
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1])


def main():
    count, next_ns = 0, 0
    while True:
        work()
        now = time.monotonic_ns()
        if now >= next_ns:
            print(now, count, waited_ns(), flush=True)
            next_ns = now + 20_000_000
        count += 1


main()
