# SPDX-License-Identifier: MIT
"""make install and make uninstall."""

import os
import subprocess
import tempfile

from test_manual import make, pages


def files_in(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def test_install_puts_everything_where_it_is_looked_for(build):
    pages(build)
    with tempfile.TemporaryDirectory() as folder:
        make(build, "install", f"DESTDIR={folder}", "PREFIX=/opt/gpu")
        there = files_in(folder)
        assert all(path.startswith("opt/gpu/") for path in there), there
        for path in ("bin/cuscope", "lib/cuscope/libcuscope-agent.so", "share/man/man1/cuscope-trace.1", "share/man/man5/cuscope-jsonl.5",
                     "share/bash-completion/completions/cuscope", "share/zsh/site-functions/_cuscope",
                     "share/fish/vendor_completions.d/cuscope.fish", "share/doc/cuscope/LICENSE", "share/doc/cuscope/trace.md"):
            assert "opt/gpu/" + path in there, path
        done = subprocess.run([folder + "/opt/gpu/bin/cuscope", "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("cuscope ")
        modes = {path: os.stat(os.path.join(folder, path)).st_mode & 0o7777 for path in there}
        programs = ("bin/cuscope", "system-generators/cuscope-agent")
        wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o755 if path.endswith(programs) else 0o644)}
        assert not wrong, wrong
        assert any(path.endswith(programs[1]) for path in modes)


def test_uninstall_takes_all_of_it_and_nothing_else(build):
    pages(build)
    with tempfile.TemporaryDirectory() as folder:
        others = ("usr/share/man/man1/other.1", "usr/bin/cuscope-not", "usr/share/man/man1/cuscoped.1")
        for other in others:
            os.makedirs(os.path.join(folder, os.path.dirname(other)), exist_ok=True)
            open(os.path.join(folder, other), "w", encoding="utf-8").close()
        make(build, "install", f"DESTDIR={folder}", "PREFIX=/usr")
        make(build, "uninstall", f"DESTDIR={folder}", "PREFIX=/usr")
        assert files_in(folder) == set(others), files_in(folder)
        assert not os.path.exists(folder + "/usr/lib/cuscope") and not os.path.exists(folder + "/usr/share/doc/cuscope")
        make(build, "uninstall", f"DESTDIR={folder}", "PREFIX=/usr")
