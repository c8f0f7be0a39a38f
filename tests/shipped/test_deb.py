# SPDX-License-Identifier: MIT
"""The packages of Debian: the same each time, sound, and with all that is installed. tests/shipped/debian installs them."""

import functools
import glob
import hashlib
import os
import shutil
import subprocess

from check import Skipped
from test_manual import ROOT, make, pages


def made_packages(build):
    if not shutil.which("dpkg-shlibdeps"):
        raise Skipped("dpkg-dev is not installed")
    pages(build)
    make(build, "deb")
    return sorted(glob.glob(os.path.join(ROOT, "dist", "cuscope*.deb")))


@functools.cache
def packages(build):
    """Made once for all tests: they take 8 s of a CPU, most of it for packing."""
    return made_packages(build)


def digests(paths):
    return {path: hashlib.sha256(open(path, "rb").read()).hexdigest() for path in paths}


def told(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_deb_is_the_same_each_time(build):
    first = digests(packages(build))
    assert len(first) == 2, first
    assert digests(made_packages(build)) == first


def test_deb_has_what_make_install_installs(build):
    program, agent = (told("dpkg-deb", "-c", path) for path in sorted(packages(build), key=lambda path: "agent" in path))
    for path in ("./usr/bin/cuscope", "./usr/lib/cuscope/libcuscope-agent.so", "./usr/share/man/man1/cuscope-agent.1.gz",
                 "./usr/share/bash-completion/completions/cuscope", "./usr/share/zsh/vendor-completions/_cuscope",
                 "./usr/share/fish/vendor_completions.d/cuscope.fish", "./usr/share/doc/cuscope/copyright",
                 *(f"./usr/share/cuscope/hooks/{os.path.basename(file)}" for file in glob.glob(os.path.join(ROOT, "src/hooks/files/*.hooks")))):
        assert path in program, path
    for path in ("./lib/systemd/system/cuscope-agent.service", "./lib/systemd/system-generators/cuscope-agent",
                 "./etc/cuscope/agent.ini", "./usr/share/cuscope/grafana/cuscope.json",
                 "./usr/share/cuscope/prometheus/cuscope-alerts.yml", "./usr/share/cuscope/kubernetes/cuscope-agent.yaml"):
        assert path in agent, path
    assert "/hooks" not in agent, agent
    assert all(line.split()[1] == "root/root" for line in (program + agent).splitlines())


def test_deb_names_the_libraries_that_it_needs(build):
    program = next(path for path in packages(build) if "agent" not in os.path.basename(path))
    depends = told("dpkg-deb", "-f", program, "Depends")
    for library in ("libbpf1", "libelf1", "libmicrohttpd12", "libc6 (>="):
        assert library in depends, depends


def test_deb_is_sound(build):
    if not shutil.which("lintian"):
        raise Skipped("lintian is not installed")
    done = subprocess.run(["lintian", "--allow-root", *packages(build)], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "running with root privileges" not in line]
    assert not said, "\n".join(said)
