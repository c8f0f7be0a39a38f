# SPDX-License-Identifier: MIT
"""--user: what a command gets of root's terminal, files and environment, and what it does not.

cuscope runs in the foreground of a terminal, as a shell starts it: shell() below is that shell.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios

import checks
from harness import Failure, Places, Skip, wait_until

PYTHON = "/usr/bin/python3"  # not one in root's home

SHELL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
report = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    os.dup2(0, 2)
    os.execv(sys.argv[2], sys.argv[2:])
os.write(report, b"child %d\\n" % child)
while True:
    status = os.waitpid(child, os.WUNTRACED)[1]
    os.tcsetpgrp(0, os.getpid())
    if not os.WIFSTOPPED(status):
        break
    os.write(report, b"stopped\\n")
    signal.sigwait({signal.SIGUSR1})
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
os.write(report, b"status %d\\n" % status)
"""


class Terminal:
    """A terminal, a shell in it, and cuscope in its foreground."""

    def __init__(self, case, command, to=None):
        self.case = case
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.said = b""
        arguments = [Places.cuscope(), "trace", "--summary-only", "--user", "nobody", "--",
                     PYTHON, "-c", command]
        if to:
            arguments = ["/bin/sh", "-c", f'exec "$@" </dev/null >{to} 2>&1', "sh", *arguments]
        self.shell = case.start(sys.executable, "-c", SHELL, case.path("shell"), *arguments,
                                stdin=self.slave, stdout=self.slave)

    def report(self):
        if not os.path.exists(self.case.path("shell")):
            return ""
        with open(self.case.path("shell")) as file:
            return file.read()

    def pid(self):
        wait_until(lambda: "child" in self.report(), "the shell")
        return int(self.report().split()[1])

    def type(self, text):
        os.write(self.master, text)

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            self.said += os.read(self.master, 65536)
        return self.said

    def wait_for(self, text, seconds=20):
        wait_until(lambda: text in self.read(0.01), f"{text!r} in {self.said!r}", seconds)

    def end(self):
        """The status as wait(2) has it."""
        def ended():
            self.read(0.01)
            return "status" in self.report()
        wait_until(ended, "cuscope to end", 30)
        self.read()
        return int(self.report().rsplit(None, 1)[1])

    def assert_given_back(self):
        settings = termios.tcgetattr(self.slave)
        checks.equal("settings of the terminal", self.before, settings)


def status_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


PUSH = r"""
import fcntl, json, os, termios
found = {"isatty": [os.isatty(i) for i in range(3)], "pushed": [], "sid": os.getsid(0) == os.getpid()}
places = list(range(256))
for path in ("/dev/tty",):
    try:
        places.append(os.open(path, os.O_RDWR))
    except OSError:
        pass
for place in places:
    try:
        for letter in b"echo pwned\n":
            fcntl.ioctl(place, termios.TIOCSTI, bytes([letter]))
        found["pushed"].append(place)
    except OSError:
        pass
found["terminal"] = os.fstat(0).st_rdev
found["open"] = [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}")
                 and fd not in places[256:]]
found["owner"] = os.fstat(0).st_uid == os.getuid()
found["size"] = list(os.get_terminal_size()) if os.isatty(1) else []
print(json.dumps(found), flush=True)
"""


def json_of(said):
    for line in said.decode().splitlines():
        if line.startswith("{"):
            return json.loads(line)
    raise Failure(f"no JSON in {said!r}")


def test_user_cannot_push_input_into_root_s_terminal(case):
    terminal = Terminal(case, PUSH)
    checks.equal("status", 0, terminal.end())
    found = json_of(terminal.said)
    checks.equal("letters that root's shell would read", 0, letters_waiting(terminal.slave))
    if found["terminal"] == os.fstat(terminal.slave).st_rdev:
        raise Failure("the command has root's terminal, and can read what is typed there later")
    checks.equal("what it has", [[True] * 3, True, [], True, [111, 33]],
                 [found[key] for key in ("isatty", "sid", "open", "owner", "size")])
    terminal.assert_given_back()


INTERRUPTED = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
print('begun', flush=True)
while not seen: time.sleep(0.01)
time.sleep(0.5)
print('interrupted', len(seen), flush=True)
"""


def letters_waiting(slave):
    """That who reads the terminal next would get."""
    settings = termios.tcgetattr(slave)
    settings[3] &= ~termios.ICANON
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    waiting = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"    "))[0]
    settings[3] |= termios.ICANON
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    return waiting


def test_user_without_a_terminal_among_its_streams_gets_none_by_its_session(case):
    out = case.path("out")
    terminal = Terminal(case, PUSH + INTERRUPTED, out)
    wait_until(lambda: os.path.exists(out) and "begun" in open(out).read(), "the command")
    terminal.type(b"\x03")
    checks.equal("status", 0, terminal.end())
    with open(out) as file:
        said = file.read()
    checks.equal("terminals that it pushed letters into", [], json_of(said.encode())["pushed"])
    checks.contains("what the command said", "interrupted 1", said)


def test_user_ctrl_c_reaches_the_command_once(case):
    terminal = Terminal(case, INTERRUPTED)
    terminal.wait_for(b"begun\r\n")
    terminal.type(b"\x03")
    terminal.wait_for(b"interrupted 1\r\n")
    checks.equal("status", 0, terminal.end())
    if b"TRACE SUMMARY" not in terminal.said:
        raise Failure(f"no summary: {terminal.said!r}")
    if terminal.said.index(b"interrupted") > terminal.said.index(b"TRACE SUMMARY"):
        raise Failure("the summary came before what the command wrote last")
    terminal.assert_given_back()


def test_user_types_to_the_command(case):
    terminal = Terminal(case, """
import os, signal
signal.signal(signal.SIGWINCH, lambda number, frame: print(list(os.get_terminal_size()), flush=True))
print('[' + input('name? ') + ']', flush=True)
print('[' + input() + ']', flush=True)
""")
    terminal.wait_for(b"name? ")
    terminal.type(b"someone\r")
    terminal.wait_for(b"[someone]\r\n")
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 222, 0, 0))
    terminal.wait_for(b"[222, 44]\r\n")
    terminal.type(b"\r")
    checks.equal("status", 0, terminal.end())
    if b"someone\r\n[someone]\r\n" not in terminal.said:
        raise Failure(f"the echo is not as a terminal has it: {terminal.said!r}")


def test_user_ctrl_z_stops_both_and_both_go_on(case):
    terminal = Terminal(case, """
import os, time
print('pid', os.getpid(), flush=True)
for i in range(20): time.sleep(0.1)
print('over', flush=True)
""")
    terminal.wait_for(b"pid ")
    terminal.wait_for(b"\r\n")
    pid = int(terminal.said.split(b"pid ")[1].split()[0])
    terminal.type(b"\x1a")
    wait_until(lambda: "stopped" in terminal.report(), "cuscope to be stopped")
    checks.equal("the command's state", True, status_of(pid) in "tT")
    terminal.assert_given_back()
    terminal.shell.signal(signal.SIGUSR1)
    terminal.wait_for(b"over\r\n")
    checks.equal("status", 0, terminal.end())
    terminal.assert_given_back()


def test_user_kill_9_of_cuscope_leaves_the_command_and_the_terminal(case):
    terminal = Terminal(case, """
import time
print('begun', flush=True)
time.sleep(2)
print('written later', flush=True)
""")
    terminal.wait_for(b"begun")
    os.kill(terminal.pid(), signal.SIGKILL)
    checks.equal("status", signal.SIGKILL, terminal.end())
    terminal.wait_for(b"written later\r\n")


def test_user_gets_no_secrets_by_the_environment(case):
    show = ["--", PYTHON, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    env = dict(case.environment(), A_SECRET="root's", WANTED="this one", LC_TIME="C", CUDA_CACHE="1",
               HOME="/root", USER="root")
    def names(name, *options):
        process = case.start_trace(["--user", "nobody", *options], show, name=name, env=env)
        checks.equal("status", 0, process.wait())
        return json_of(process.out().encode())
    given = names("plain")
    checks.equal("root's own", [], [key for key in given if key in ("A_SECRET", "WANTED", "SUDO_USER")])
    checks.equal("whose", ("nobody", "nobody", "1", "C"),
                 (given["USER"], given["LOGNAME"], given["CUDA_CACHE"], given["LC_TIME"]))
    checks.equal("home and shell", True, given["HOME"] != "/root" and given["SHELL"][0] == "/")
    wanted = names("wanted", "--env", "WANT*", "--env", "MORE=set")
    checks.equal("wanted", ["this one", "set", None],
                 [wanted.get(key) for key in ("WANTED", "MORE", "A_SECRET")])
    kept = names("kept", "--keep-env")
    checks.equal("all", ("root's", "nobody"), (kept["A_SECRET"], kept["USER"]))


def test_user_command_is_looked_for_in_the_path_that_env_sets(case):
    """As that of a conda environment, which sudo has taken out of cuscope's own."""
    folder = case.path("bin")
    os.mkdir(folder)
    os.symlink("/bin/echo", os.path.join(folder, "of-the-environment"))
    for at in (folder, os.path.dirname(folder)):
        os.chmod(at, 0o755)
    for user in ("root", "nobody"):
        process = case.start_trace(["--user", user, "--env", f"PATH={folder}"],
                                   ["--", "of-the-environment", "was found"], name=user)
        checks.equal("status", 0, process.wait())
        checks.contains("output", "was found", process.out())


def test_user_gets_no_descriptor_of_root_s(case):
    with open(case.path("secret"), "w") as file:
        os.set_inheritable(file.fileno(), True)
        process = case.start_trace(["--user", "nobody"], ["--", "/bin/ls", "/proc/self/fd"],
                                   close_fds=False)
        checks.equal("status", 0, process.wait())
    listed = [word for word in process.out().split("===")[0].split() if word.isdigit()]
    checks.equal("descriptors", ["0", "1", "2", "3"], listed)  # 3 is what ls itself reads


# A session of its own with a key in it, or one that looks for the key of the session that it is in.
KEYS = """
import ctypes, os, platform, sys
add_key, _, keyctl = range(217, 220) if platform.machine() == "aarch64" else range(248, 251)
call = ctypes.CDLL(None).syscall
if len(sys.argv) > 1:
    call(keyctl, 1, b"cuscope-test")
    call(add_key, b"user", b"cuscope-secret", b"secret", 6, -3)
    os.execv(sys.argv[1], sys.argv[1:])
print("found" if call(keyctl, 10, -3, b"user", b"cuscope-secret", 0) > 0 else "no key")
"""


def test_user_gets_no_keys_of_root_s_session(case):
    trace = [Places.cuscope(), "trace", "--summary-only"]

    def seen(*options):
        process = case.start(PYTHON, "-c", KEYS, *trace, *options, "--", PYTHON, "-c", KEYS)
        checks.equal("status", 0, process.wait())
        return process.out().split("===")[0].strip()

    if seen() == "no key":
        raise Skip("this kernel, or its container, has no keys")
    checks.equal("key", "no key", seen("--user", "nobody"))
