# SPDX-License-Identifier: MIT
"""A node agent, and programs in cgroups and namespaces that containers and jobs have."""

import contextlib
import os
import re
import socket
import subprocess
import urllib.error
import urllib.request

from harness import Failure, Places, Skip, wait_until

ID = "0123456789abcdef" * 4
UID = "0a1b2c3d-1111-2222-3333-4444555566"  # and two digits, which tell the pods of tests apart
CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")


@contextlib.contextmanager
def cgroup(path):
    """A cgroup of that path, as a runtime would make it."""
    root = next((root for root in CGROUPS if os.path.exists(os.path.join(root, "cgroup.procs"))), None)
    if not root:
        raise Skip("no cgroups here")
    made, folder = [], root
    try:
        for part in path.strip("/").split("/"):
            folder = os.path.join(folder, part)
            with contextlib.suppress(FileExistsError):
                try:
                    os.mkdir(folder)
                except PermissionError as error:
                    raise Skip(f"no cgroup can be made here: {error}") from None
                made.append(folder)
        yield folder
    finally:
        for folder in reversed(made):
            with contextlib.suppress(OSError, Failure):
                wait_until(lambda: not open(os.path.join(folder, "cgroup.procs")).read(), "an empty cgroup", 5)
                os.rmdir(folder)


class Agent:
    """`cuscope agent`, which gives each process series at once."""

    def __init__(self, case, *options, config=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = case.path("agent.ini")
        with open(path, "w") as file:
            file.write(f"[agent]\nlisten = 127.0.0.1:{self.port}\ninterval = 200ms\nage = 0s\n{config}")
        os.chmod(path, 0o600)
        os.chmod(case.folder, 0o755)  # who could exchange the file would command the agent
        self.process = case.cuscope("agent", "--config", path, *options, name="agent")
        wait_until(lambda: "serving" in self.process.err() or self.process.process.poll() is not None, "the agent", 60)
        if self.process.process.poll() is not None:
            raise Failure(f"the agent ended: {self.process.err()}")

    def metrics(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                return answer.read().decode()  # which has to be UTF-8
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return ""  # before the first figures

    def info(self, pid):
        """The labels of a process, or None."""
        line = re.search(rf'^cuscope_process_info{{(pid="{pid}",.*)}} 1$', self.metrics(), re.M)
        return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line[1])) if line else None

    def wait_for(self, process, **wanted):
        """Its labels, once those that are wanted are there."""
        seen = [None]

        def look():
            seen[0] = self.info(process.pid)
            return seen[0] and all(seen[0].get(key) == value for key, value in wanted.items())

        try:
            wait_until(look, "labels", 40)
        except Failure:
            raise Failure(f"labels are {seen[0]}, wanted {wanted}; the agent says {self.process.err()!r}") from None
        return seen[0]

    def end(self, seconds=20):
        self.process.signal(15)
        return self.process.wait(seconds)


def program(case, *before, folder=None, env=None, words=("60", "100"), path=None):
    """gpuloop behind the commands of `before`, one line of a shell each, in a cgroup; by one pid all along."""
    path = path or Places.program("gpuloop")
    join = [f"echo $$ > {folder}/cgroup.procs"] if folder else []
    script = " && ".join([*join, *before, 'exec ${AS:-} "$@"'])
    return case.start("/bin/sh", "-c", script, "sh", path, *words, stdin=subprocess.PIPE,
                      env={**case.environment(), **(env or {})})


def in_mounts(case, *before, **more):
    """The same in a mount namespace, where `before` mounts what the program is to see."""
    env = {"SCRIPT": " && ".join([*before, 'exec ${AS:-} "$@"']), **more.pop("env", {})}
    process = case.start("/bin/sh", "-c", (f"echo $$ > {more['folder']}/cgroup.procs && " if more.get("folder") else "")
                         + 'exec "$0" sh -c "$SCRIPT" sh "$@"', Places.program("ownroot"), Places.program("gpuloop"), "60", "100",
                         stdin=subprocess.PIPE, env={**case.environment(), **env})
    return process
