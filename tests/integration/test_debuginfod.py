# SPDX-License-Identifier: MIT
"""Debug files that are fetched with debuginfod's client, from a server on this machine."""

import contextlib
import http.server
import os
import pwd
import shutil
import subprocess
import threading
import time

import checks
import profiles
from harness import Failure, Places, Skip, links_of, stress, wait_until
from test_native_lines import apart, build_id_of, copy, has_lines, has_none


class Server:
    """Serves what `answer` says for each build id that is asked for, and keeps who asked."""

    def __init__(self, answer):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                body = answer(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(body or b"")

            def log_message(self, *_):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def needs_client():
    if not shutil.which("debuginfod-find"):
        raise Skip("debuginfod-find is not installed (package debuginfod)")


def test_debuginfod_a_client_that_others_can_change_is_not_called_missing(case):
    needs_client()
    if subprocess.run([Places.program("ownroot"), "true"], capture_output=True, check=False).returncode:
        raise Skip("no mounts of a process's own here")
    client = shutil.copy(shutil.which("debuginfod-find"), case.path("debuginfod-find"))
    os.chmod(client, 0o775)
    hidden = [Places.program("ownroot"), "sh", "-c", f"mount --bind {client} {shutil.which('debuginfod-find')} && exec \"$@\"", "sh"]
    process = case.start(*hidden, Places.cuscope(), "doctor", name="doctor")
    process.wait()
    checks.contains("doctor", "debuginfod-find is not run: others than root can change it", process.out())
    checks.contains_not("doctor", "not installed", process.out())


def test_debuginfod_why_a_client_is_not_run_is_told(case):
    needs_client()
    if subprocess.run([Places.program("ownroot"), "true"], capture_output=True, check=False).returncode:
        raise Skip("no mounts of a process's own here")
    path, debug = apart(case)
    os.unlink(debug)
    os.mkdir(case.path("empty"))
    os.chmod(shutil.copy(shutil.which("debuginfod-find"), case.path("client")), 0o775)
    env = {key: value for key, value in os.environ.items() if not key.startswith("DEBUGINFOD_")} | {"DEBUGINFOD_URLS": "http://127.0.0.1:1"}
    for name, mount, why in (("missing", f"mount --bind {case.path('empty')} /usr/local/bin && mount --bind {case.path('empty')} /usr/bin",
                              "debuginfod-find is not installed"),
                             ("changed", f"mount --bind {case.path('client')} {shutil.which('debuginfod-find')}",
                              "debuginfod-find is not run: others than root can change it")):
        process = profiles.started(case, path, name="program-" + name)
        run = case.start(Places.program("ownroot"), "sh", "-c", f"{mount} && exec \"$@\"", "sh", Places.cuscope(), "profile", "-F", "999",
                         "--duration", "600ms", "-o", case.path(name + ".pb.gz"), "-p", str(process.pid), env=env, name=name)
        checks.equal(f"{name}: status", 0, run.wait())
        profiles.ended(process)
        checks.contains(name, f"DEBUGINFOD_URLS is set, but {why}", run.err())


def serving(build_id, debug):
    with open(debug, "rb") as file:
        body = file.read()
    return lambda path: body if path == f"/buildid/{build_id}/debuginfo" else None


def profile_with(case, path, urls, name="profile", target=None, meanwhile=None, **environment):
    """The profile, what was said, and how long it took after its time was over."""
    process = profiles.started(case, path, name="program-" + name, env=os.environ | (target or {}))
    out = case.path(name + ".pb.gz")
    env = {key: value for key, value in os.environ.items() if not key.startswith("DEBUGINFOD_")}
    env |= environment | ({"DEBUGINFOD_URLS": urls} if urls else {})
    begin = time.monotonic()
    run = case.cuscope("profile", "-F", 999, "--duration", "600ms", "-o", out, "-p", process.pid, env=env)
    if meanwhile:
        meanwhile(run.pid)
    checks.equal(f"status ({run.err() if run.wait() else ''})", 0, run.wait())
    took = time.monotonic() - begin - 0.6
    profiles.ended(process)
    return profiles.Profile(out), run.err(), took


def test_a_debug_file_is_fetched_where_the_user_asked(case):
    """By its build id, into memory, and by nobody; not without the variable."""
    needs_client()
    path, debug = apart(case)
    with Server(serving(build_id_of(path), debug)) as server:
        os.unlink(debug)
        profile, said, _ = profile_with(case, path, None, name="unasked")
        has_none(profile)
        checks.equal("what was asked for", [], server.asked)
        profile, said, _ = profile_with(case, path, server.url)
        has_lines(profile)
        checks.contains("what is said", "debug files that this machine lacks are asked for", said)
        checks.contains("what the profile says", "Debug files from DEBUGINFOD_URLS: [1-9]", profile.said())
        if not any(build_id_of(path) in asked for asked in server.asked):
            raise Failure(f"{server.asked}")


def test_a_file_with_debug_information_is_not_asked_for(case):
    needs_client()
    path = copy(case)
    with Server(lambda _: None) as server:
        has_lines(profile_with(case, path, server.url)[0])
        if any(build_id_of(path) in asked for asked in server.asked):
            raise Failure(f"{server.asked}")


def test_who_called_sudo_fetches_into_his_own_cache(case):
    needs_client()
    path, debug = apart(case)
    user = pwd.getpwnam("nobody")
    cache = case.path("cache")
    os.mkdir(cache, 0o700)
    os.chown(cache, user.pw_uid, user.pw_gid)
    sudo = {"SUDO_UID": str(user.pw_uid), "SUDO_GID": str(user.pw_gid), "DEBUGINFOD_CACHE_PATH": cache}
    way = cache
    while way != "/":  # the folder of the tests is root's alone
        way = os.path.dirname(way)
        if not os.stat(way).st_mode & 0o001:
            raise Skip(f"others cannot go through {way}")
    with Server(serving(build_id_of(path), debug)) as server:
        has_lines(profile_with(case, path, server.url, **sudo)[0])
        place = f"{cache}/{build_id_of(path)}/debuginfo"
        checks.equal("whose it is", user.pw_uid, os.stat(place).st_uid)
        asked = len(server.asked)
        has_lines(profile_with(case, path, server.url, name="again", **sudo)[0])
        checks.equal("asked again for what is there", [], [path for path in server.asked[asked:] if build_id_of(debug) in path])


@stress("it takes 16 s")
def test_a_server_that_hangs(case):
    """It costs its time once, and the profile is there without lines."""
    needs_client()
    path, _ = apart(case)
    over = threading.Event()
    with Server(lambda _: over.wait(100) and None) as server:
        profile, said, took = profile_with(case, path, server.url)
        over.set()
        has_none(profile)
        checks.contains("what the profile says", "Debug files from DEBUGINFOD_URLS: 0 of", profile.said())
        if took > 40:
            raise Failure(f"{took} s")


def client_of(pid):
    """The process that fetches, of those that a cuscope has started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = set(file.read().split())
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            children |= set(file.read().split())
    for child in children:
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{child}/comm") as file:
            if file.read().startswith("debuginfod-find"):
                return child
    return None


def test_who_fetches_has_no_rights(case):
    needs_client()
    path, _ = apart(case)
    over = threading.Event()
    seen = {}

    def look(pid):
        wait_until(lambda: server.asked and client_of(pid), "the client to be there")
        client = client_of(pid)
        for name in "status", "limits", "environ":
            with open(f"/proc/{client}/{name}") as file:
                seen[name] = file.read()
        seen["open"] = sorted(links_of(client))
        over.set()
    with Server(lambda _: over.wait(100) and None) as server:
        profile_with(case, path, server.url, meanwhile=look, SECRET_OF_ROOT="1", LD_PRELOAD_OF_ROOT="1")
    for what in ("Uid:\\t65534\\t65534\\t65534\\t65534", "Gid:\\t65534", "Groups:\\s*$", "CapPrm:\\t0{16}", "CapEff:\\t0{16}",
                 "CapBnd:\\t0{16}", "NoNewPrivs:\\t1"):
        checks.contains("status", f"(?m)^{what}", seen["status"])
    checks.contains("limits", "Max file size +536870912 +536870912", seen["limits"])
    names = {word.split("=")[0] for word in seen["environ"].split("\0") if word}
    checks.equal("environment", set(), names - {"PATH", "DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_MAXTIME",
                                                "DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXSIZE", "DEBUGINFOD_RETRY_LIMIT",
                                                "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
                                                "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"})
    foreign = [file for file in seen["open"] if file != "/dev/null" and not file.startswith(("socket:", "pipe:", "anon_inode:", "/"))]
    checks.equal("open files", [], foreign)
    if any("bpf" in file or "perf" in file for file in seen["open"]):
        raise Failure(f"{seen['open']}")


def test_a_server_that_lies(case):
    """Bytes that are no file of any kind, the debug file of another program, and one that has the right number only."""
    needs_client()
    path, debug = apart(case)
    with open(debug, "rb") as file:
        right = file.read()
    build_id = bytes.fromhex(build_id_of(path))
    at = right.index(build_id)
    foreign = right[:at] + bytes(len(build_id)) + right[at + len(build_id):]
    damaged = right[:at + len(build_id)] + os.urandom(len(right) - at - len(build_id))
    for name, body, said in (("nonsense", os.urandom(100000), "the debug information that was fetched is not of this file"),
                             ("foreign", foreign, "the debug information that was fetched is not of this file"),
                             ("damaged", damaged, ""), ("empty", b"", "")):
        with Server(lambda asked, body=body: body if build_id_of(path) in asked else None) as server:
            profile, err, _ = profile_with(case, path, server.url, name=name)
            has_none(profile)
            checks.contains(name, said, err)


def test_what_a_target_asks_for_is_not_fetched(case):
    needs_client()
    path, debug = apart(case)
    with Server(serving(build_id_of(path), debug)) as server:
        has_none(profile_with(case, path, None, target={"DEBUGINFOD_URLS": server.url})[0])
        checks.equal("what was asked for", [], server.asked)
