# SPDX-License-Identifier: MIT
"""Run by gdb on tests/programs/stackpoints: writes a line a point to the file that GDB_POINTS names, its number and its frames.

Addresses are those that stackpoints writes: one less than a return address. Functions that were inlined are in the frame of
another, and those that ended with a jump have none: gdb shows both, and they are left out.
"""

import os

import gdb  # pylint: disable=import-error

FRAMES_MAX = 600


def addresses():
    frame, found, exact = gdb.newest_frame(), [], True
    while frame and len(found) < FRAMES_MAX:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            signal = frame.type() == gdb.SIGTRAMP_FRAME
            found.append(frame.pc() - (not exact and not signal))
            exact = signal
        frame = frame.older()
    return found


class Point(gdb.Breakpoint):
    def stop(self):
        number = int(gdb.parse_and_eval("$rdi" if "x86-64" in gdb.selected_frame().architecture().name() else "$x0"))
        print(number, *(f"{address:x}" for address in addresses()), file=OUT)
        return False


for setting in ("confirm off", "pagination off", "backtrace past-main on", "startup-with-shell off"):
    gdb.execute("set " + setting)
for name in ("SIGALRM", "SIGILL", "SIGUSR1", "SIGUSR2"):
    gdb.execute(f"handle {name} nostop noprint pass", to_string=True)
with open(os.environ["GDB_POINTS"], "w") as OUT:
    Point("point_is")
    gdb.execute("run")
