# SPDX-License-Identifier: MIT
"""Real shells that somebody types into: what stands on the line after TAB, and what is shown."""

import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time

from check import Skipped

PATIENCE = 20  # seconds until a shell that says nothing is given up

# What was typed is printed, word by word, by a function of the program's name. The program itself is asked by
# `command`, which leaves functions out.
ECHO = "cuscope() { printf 'got:'; printf '<%s>' \"$@\"; printf ':end\\n'; }"

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             ["bind 'set bell-style none'", "bind 'set enable-bracketed-paste off'", "PS1='ready> '",
              "source /usr/share/bash-completion/bash_completion", "source <(command cuscope completion bash)", ECHO]),
    "plain bash": (["bash", "--norc", "--noprofile", "-i"],
                   ["bind 'set bell-style none'", "bind 'set enable-bracketed-paste off'", "PS1='ready> '",
                    "source <(command cuscope completion bash)", ECHO]),
    "zsh": (["zsh", "-f", "-i"],
            ["unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste", "PS1='ready> '",
             "setopt no_beep no_auto_menu", "autoload -Uz compinit && compinit -u -D",
             "source <(command cuscope completion zsh)", ECHO]),
}


class Shell:
    """An interactive shell on a terminal of its own, in a folder of its own."""

    def __init__(self, build, name, files=()):
        command, begin = SHELLS[name]
        if not shutil.which(command[0]):
            raise Skipped(f"{command[0]} is not installed")
        self.folder = tempfile.TemporaryDirectory()
        for file in files:
            open(os.path.join(self.folder.name, file), "w", encoding="utf-8").close()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(self.folder.name)
            environment = {"PATH": f"{build}:/usr/bin:/bin", "TERM": "dumb", "HOME": self.folder.name, "LC_ALL": "C.UTF-8",
                           "COLUMNS": "200", "LINES": "100"}
            os.execvpe(command[0], command, environment)
        for line in begin:
            os.write(self.terminal, (line + "\n").encode())
        self.ask("echo begun")

    def read_until(self, wanted):
        text, until = "", time.monotonic() + PATIENCE
        while not re.search(wanted, text):
            left = until - time.monotonic()
            if left < 0 or not select.select([self.terminal], [], [], left)[0]:
                raise AssertionError(f"the shell did not say {wanted!r}, but {text[-500:]!r}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def ask(self, line):
        os.write(self.terminal, (line + "\n").encode())
        return self.read_until(r"(?m)^begun\r?$")

    def complete(self, typed, wanted):
        """The words that stand there after TAB. A machine that is busy is given time until they are what is wanted."""
        for patience in (0.2, 1, 4):
            os.write(self.terminal, (typed + "\t").encode())
            time.sleep(patience)  # a line that ends meanwhile is not completed
            os.write(self.terminal, b"\n")
            found = re.findall(r"got:(.*?):end", self.read_until(r"got:(.*):end\r"))
            words = re.findall(r"<(.*?)>", found[-1])
            if words == wanted:
                break
        return words

    def shown(self, typed, wanted):
        """What is listed after two TABs, until `wanted` has come."""
        os.write(self.terminal, (typed + "\t\t").encode())
        text = self.read_until(wanted)
        os.write(self.terminal, b"\x15")  # forget the line
        return text

    def close(self):
        os.close(self.terminal)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def fish(build, line, files=()):
    """What fish would offer for a line."""
    if not shutil.which("fish"):
        raise Skipped("fish is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            open(os.path.join(folder, file), "w", encoding="utf-8").close()
        done = subprocess.run(["fish", "--no-config", "-c", "cuscope completion fish | source; complete -C $argv[1]", line],
                              cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                              env={"PATH": f"{build}:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and not done.stderr, f"fish: {done.stderr}"
    return [row.split("\t")[0] for row in done.stdout.splitlines()]
