# SPDX-License-Identifier: MIT
"""The training process (model.py) that benchmarks measure, and the socket to it."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 180
STEPS = {"small": 200, "large": 15}  # of a window that counts
SETTLE_STEPS = {"small": 25, "large": 2}
NSYS = "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"


def nsys_path():
    """Where nsys is, None where it is not."""
    return shutil.which("nsys") or next(iter(sorted(glob.glob(NSYS))), None)


def nsys_before(nsys, work):
    """What a program is started under to be profiled by nsys as cuscope would trace it."""
    return [nsys, "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none", "--force-overwrite=true",
            "-o", os.path.join(work, "nsys-report")]


class Trainer:
    """A training process and the socket to it. `before`: what it is started under, `model`: the program, which is given a socket."""

    def __init__(self, work, name, before=(), env=None, model=os.path.join(HERE, "model.py")):
        path = os.path.join(work, name + ".socket")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(1)
        self.server.settimeout(1)
        self.log = open(os.path.join(work, name + ".log"), "w+")
        command = [*before, sys.executable, model, path]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        start_new_session=True, env=dict(os.environ, **(env or {})))

    def connect(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                peer, _ = self.server.accept()
                break
            except TimeoutError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.log.seek(0)
                    raise RuntimeError("the training did not start:\n" +
                                       self.log.read()[-2000:]) from None
        peer.setblocking(True)
        self.lines = peer.makefile("rw")
        self.versions = json.loads(self.lines.readline())
        self.pids = [self.versions["pid"]]

    def send(self, *words):
        print(*words, file=self.lines, flush=True)

    def answer(self):
        line = self.lines.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError("the training ended:\n" + self.log.read()[-2000:])
        return json.loads(line)

    def window(self, size, n, skip=0):
        """What a step took: see model.py."""
        self.send("steps", size, n, skip)
        return self.answer()

    def steps(self, size, n):
        return self.window(size, n)["ms"]

    def micro(self, library, passes):
        """ns of single calls: {function: [...]}."""
        self.send("micro", library, passes)
        return self.answer()

    def cupti(self, library, on):
        """CUPTI's kernel activities alone; how that ended, 0: well."""
        self.send("cupti", library, "on" if on else "off")
        return self.answer()["status"]

    def profiler(self, on):
        self.send("profiler", "on" if on else "off")
        self.answer()

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
