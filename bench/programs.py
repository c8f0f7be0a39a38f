# SPDX-License-Identifier: MIT
"""How often the kernel ran eBPF programs, and how long: kernel.bpf_stats_enabled, which costs each run some 50 ns itself."""

import collections
import contextlib
import ctypes
import os

SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
GET_FD_BY_ID, GET_INFO = 13, 15
ENABLED = "/proc/sys/kernel/bpf_stats_enabled"
NAME, RUN_NS, RUNS, INFO_BYTES = 64, 192, 200, 224  # of struct bpf_prog_info

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, words):
    return libc.syscall(SYSCALL, command, words, ctypes.sizeof(words))


def info(number):
    fd = bpf(GET_FD_BY_ID, (ctypes.c_uint32 * 4)(number))
    if fd < 0:
        return None
    room = ctypes.create_string_buffer(INFO_BYTES)
    words = (ctypes.c_uint32 * 4)(fd, INFO_BYTES)
    ctypes.c_uint64.from_buffer(words, 8).value = ctypes.addressof(room)
    failed = bpf(GET_INFO, words)
    os.close(fd)
    return None if failed else room.raw


def held(pid):
    """Numbers of the programs that a process holds, by themselves or by where they are attached."""
    folder = f"/proc/{pid}/fdinfo"
    for fd in os.listdir(folder):
        with contextlib.suppress(OSError), open(os.path.join(folder, fd)) as file:
            yield from (int(line.split()[1]) for line in file if line.startswith("prog_id:"))


def counted(pid):
    """{name: (runs, nanoseconds)} of all programs of that name that a process holds."""
    found = collections.defaultdict(lambda: (0, 0))
    for number in set(held(pid)):
        raw = info(number)
        if raw:
            name = raw[NAME:NAME + 16].split(b"\0")[0].decode()
            runs, ns = (int.from_bytes(raw[at:at + 8], "little") for at in (RUNS, RUN_NS))
            found[name] = found[name][0] + runs, found[name][1] + ns
    return found


class Counting:
    """While it is entered the kernel counts."""

    def __enter__(self):
        with open(ENABLED) as file:
            self.before = file.read()
        self.set("1")

    def __exit__(self, *_):
        self.set(self.before)

    @staticmethod
    def set(value):
        with open(ENABLED, "w") as file:
            file.write(value)
