# SPDX-License-Identifier: MIT
"""The node agent: its figures are what programs did, whatever its clients and its settings are."""

import base64
import os
import random
import signal
import socket
import subprocess
import time

import checks
import harness
from harness import Counts, Failure, Places, alone, wait_until
from node import Node, parse


def contains(what, wanted, text):
    if wanted not in text:
        raise Failure(f"{what}: no {wanted!r} in {text[:600]!r}")


def at_least(what, least, seen):
    if seen < least:
        raise Failure(f"{what}: {seen}, not at least {least}")


def at_most(what, most, seen):
    if seen > most:
        raise Failure(f"{what}: {seen}, more than {most}")


def run_seen(case, node, program, *arguments, name):
    """Runs a program that lives for some snapshots; its pid, and what it says that it did."""
    process = case.program(program, *arguments, name=name, stdin=subprocess.PIPE,
                           env=dict(case.environment(name + ".counts"), SIMCUDA_TIME_SCALE="1"))
    wait_until(lambda: node.of(process.pid), f"{program} to be seen", 30)
    checks.equal(f"status of {program}", 0, process.wait())
    return process.pid, Counts(case.path(name + ".counts"))


def settled(node, pid, key, wanted):
    """Its last figures come with the next snapshot."""
    wait_until(lambda: node.of(pid).get(key) == wanted, f"{key} to be {wanted}, not {node.of(pid)}")
    return node.of(pid)


# ---- figures -------------------------------------------------------------------------------------


def test_node_counts_what_a_program_did(case):
    node = Node(case)
    pid, counts = run_seen(case, node, "gpuloop", 2, 100, name="launcher")
    launches = sum(counts.of("launches").values())
    figures = settled(node, pid, "launches_total", launches)
    at_least("time in launches", 0, figures["launch_seconds_total"])
    checks.equal("waits", launches / 100, figures["syncs_total"])
    pid, counts = run_seen(case, node, "live", "stay", 2000, name="holder")
    freed = sum(n for key, n in counts.of("frees").items() if "device" in key)
    figures = settled(node, pid, "info", 1)
    checks.equal("device allocations", 6, figures["allocations_total device"])
    checks.equal("host allocations", 3, figures["allocations_total host"])
    checks.equal("frees", 1, figures["frees_total device"])
    checks.equal("peak", 6 * 1000 + 3 * 2000, figures["peak_bytes"])
    wait_until(lambda: "live_bytes device" not in node.of(pid), "its memory to be gone with it")


def test_node_both_formats_say_the_same(case):
    node = Node(case)
    status, headers, text = node.get()
    checks.equal("status", 200, status)
    checks.equal("type", "text/plain; version=0.0.4; charset=utf-8", headers["Content-Type"])
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
    _, headers, new = node.get(headers=accept)
    checks.equal("type", "application/openmetrics-text; version=1.0.0; charset=utf-8", headers["Content-Type"])
    checks.equal("end", "# EOF", new.splitlines()[-1])
    old = {name for name, _ in parse(text)}
    for name in {name for name, _ in parse(new)} ^ old:
        if not name.endswith("_created"):
            raise Failure(f"only one format has {name}")
    contains("unit", "# UNIT cuscope_copy_bytes bytes\n", new)
    contains("type", "# TYPE cuscope_copy_bytes counter\n", new)
    contains("type", "# TYPE cuscope_copy_bytes_total counter\n", text)
    status, headers, body = node.get(method="HEAD")
    checks.equal("HEAD", (200, ""), (status, body))


def test_node_a_restart_begins_at_0(case):
    node = Node(case)
    process = case.program("gpuloop", 30, 100, stdin=subprocess.PIPE)
    wait_until(lambda: node.of(process.pid).get("launches_total", 0) > 300, "launches", 30)
    node.process.signal(signal.SIGTERM)
    checks.equal("status", 0, node.process.wait())
    created = time.time()
    again = Node(case, name="again")
    wait_until(lambda: again.of(process.pid).get("launches_total", 0) > 0, "launches", 30)
    text = again.get(headers={"Accept": "application/openmetrics-text"})[2]
    begun = [value for (name, labels), value in parse(text).items()
             if name == "cuscope_process_launches_created" and dict(labels).get("pid") == str(process.pid)]
    at_least("when it was 0", created - 5, begun[0])


def test_node_errors_by_function_and_code(case):
    node = Node(case)
    before = node.metrics()
    checks.equal("status", 0, case.program("errors").wait())
    def grown():
        now = node.metrics()
        return {tuple(v for _, v in labels): value - before.get((name, labels), 0)
                for (name, labels), value in now.items() if name == "cuscope_errors_total"}
    wanted = {("CUDA_ERROR_INVALID_HANDLE", "cuLaunchKernel"): 3}
    wait_until(lambda: all(grown().get(key, 0) >= n for key, n in wanted.items()),
               f"errors, not {grown()}")


# ---- clients -------------------------------------------------------------------------------------


def raw(node, request, timeout=10):
    """What comes back for these bytes, until the other side closes."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=timeout) as client:
        got = b""
        try:
            client.sendall(request)
            while True:
                piece = client.recv(65536)
                if not piece:
                    break
                got += piece
        except OSError:
            pass
        return got


def test_node_refuses_what_it_does_not_serve(case):
    node = Node(case)
    for path, method, status in (("/nothing", "GET", 404), ("/metrics", "POST", 405), ("/metrics", "DELETE", 405),
                                 ("/", "GET", 200), ("/../etc/passwd", "GET", 404)):
        checks.equal(f"{method} {path}", status, node.get(path, method)[0])
    contains("body", b" 413 ", raw(node, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nabcde"))
    contains("chunks", b" 413 ", raw(node, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"))
    huge = raw(node, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n")
    if b" 200 " in huge[:64]:
        raise Failure(f"a header of 100,000 bytes was taken: {huge[:64]}")
    # a page in a browser whose own name was made to point to this machine
    for host, status in (("evil.example", 421), (f"127.0.0.1.evil.example:{node.port}", 421), ("localhost:1", 200)):
        checks.equal(f"status for {host}", status, node.get(headers={"Host": host})[0])
    chance = random.Random(9407)
    whole = (b"GET /record?last=30s&request=1 HTTP/1.1\r\nHost: 127.0.0.1:9407\r\nAuthorization: Bearer abc\r\n"
             b"Accept: application/openmetrics-text;version=1.0.0;q=0.5,*/*\r\nContent-Length: 0\r\n\r\n")
    for _ in range(200):
        raw(node, mutated(chance, whole))
    checks.equal("it goes on", 200, node.get()[0])


def mutated(chance, request):
    request = bytearray(request)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(request))
        how = chance.randrange(4)
        if how == 0:
            request[at] = chance.randrange(256)
        elif how == 1:
            del request[at:at + chance.randint(1, 20)]
        elif how == 2:
            request[at:at] = bytes([chance.randrange(256)]) * chance.choice((1, 3, 300, 9000))
        else:
            request[at:at] = request[:at]
    return bytes(request) + b"\r\n\r\n"


def test_node_slow_clients_hold_nobody_up(case):
    node = Node(case)
    clients = []
    try:
        for i in range(650):
            client = socket.socket()
            clients.append(client)
            if i < 250: # at once: what the queue has no room for comes again a second later
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", node.port))
            else: # each is there before the next: those who come make those go who were there
                client.settimeout(30 * harness.patience)
                client.connect(("127.0.0.1", node.port))
                client.setblocking(False)
            if i % 100 == 0:
                checks.equal("served beside them", 200, node.get()[0])
        for client in clients:
            try:
                client.send(b"GET /metrics HTTP/1.1\r\nX: ")
            except OSError:
                pass
        begin = time.monotonic()
        for _ in range(5):
            checks.equal("served beside them", 200, node.get()[0])
        at_most("seconds for five scrapes", 5, time.monotonic() - begin)
    finally:
        for client in clients:
            client.close()
    figures = node.metrics()
    # 400 came one by one, and 48 have room; how many of the first ones the queue has taken depends on the machine
    at_least("connections that were ended", 400 - 48, figures["cuscope_agent_connections_ended_total", ()])
    at_most("open files", 300, figures["cuscope_agent_open_files", ()])
    at_most("memory", 64 << 20, figures["cuscope_agent_resident_bytes", ()])


# ---- addresses, secrets, settings ----------------------------------------------------------------


def refused(case, *options, status=2):
    process = subprocess.run([Places.cuscope(), "agent", *options], capture_output=True, timeout=30,
                             stdin=subprocess.DEVNULL, env=case.environment())
    checks.equal(f"status of {options} ({process.stderr[-300:]})", status, process.returncode)
    return process.stderr.decode()


def secret(case, name, text, mode=0o600):
    path = case.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def certificate(case):
    key, cert = case.path("key.pem"), case.path("cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return key, cert


def test_node_addresses_and_files_that_are_refused(case):
    os.chmod(case.folder, 0o755)
    contains("an address for others", "needs --tls-cert, --tls-key and --token-file",
                    refused(case, "--listen", "0.0.0.0:1", status=1))
    contains("of IPv6", "needs --tls-cert", refused(case, "--listen", "[::]:1", status=1))
    for address in ("localhost:1", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:1", "[::1]", ""):
        contains(f"'{address}'", "is no address with a port", refused(case, "--listen", address))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = "127.0.0.1:%d" % other.getsockname()[1]
        contains("in use", f"{address} is in use", refused(case, "--listen", address, status=1))
    token = secret(case, "token", "a" * 20, 0o640)
    contains("a token that others read", "is secret", refused(case, "--token-file", token, status=1))
    os.chmod(token, 0o600)
    os.chown(token, 65534, 65534)
    contains("somebody's token", "belongs to user 65534", refused(case, "--token-file", token, status=1))
    short = secret(case, "short", "abc\n")
    contains("a short token", "16 to 256", refused(case, "--token-file", short, status=1))
    key, cert = certificate(case)
    contains("no key", "go together", refused(case, "--tls-cert", cert, status=1))
    contains("a wrong pair", "cannot serve", refused(case, "--tls-cert", short, "--tls-key", key, status=1))
    pipe = case.path("pipe")
    os.mkfifo(pipe, 0o600)
    contains("a pipe", "is no regular file", refused(case, "--config", pipe))


def test_node_mistakes_in_settings_are_told_with_their_line(case):
    os.chmod(case.folder, 0o755)
    for text, line, words in (
            ("[agent]\ntop = many\n", 2, "from 0 to 500"),
            ("[agent]\n\ntop = 501\n", 3, "from 0 to 500"),
            ("[agent]\ninterval = 1\ninterval = 2\n", 3, "is there twice"),
            ("[agent]\ninterwal = 1s\n", 2, "did you mean 'interval'?"),
            ("[agnet]\ntop = 1\n", 2, "did you mean 'agent'?"),
            ("top = 1\n", 1, "stands before the first section"),
            ("[agent]\nlisten = nowhere\n", 2, "is no address with a port"),
            ("[agent\n", 1, "is no '[section]'"),
            ("[agent]\nthe top is 3\n", 2, "is no '[section]'"),
            ("[agent]\nnames = other\n", 2, "gpuprobe"),
            ("[labels]\nenv = RANK, 1ST\n", 2, "is no name of a variable"),
            ("[labels]\nenv = RANK,,B\n", 2, "is no name of a variable"),
            ("[agent]\ntop = 1\n  2\n", 3, "begins with a blank"),
            ("[agent]\nlisten = " + "1" * 300 + "\n", 2, "longer than 190 bytes")):
        path = secret(case, "bad.ini", text, 0o644)
        said = refused(case, "--config", path)
        contains(text, f"bad.ini:{line}: ", said)
        contains(text, words, said)
    path = secret(case, "open.ini", "[agent]\n", 0o666)
    contains("others write it", "others than its owner may write it", refused(case, "--config", path))
    os.makedirs(case.path("open"))
    os.chmod(case.path("open"), 0o777)
    path = secret(case, "open/agent.ini", "[agent]\n", 0o644)
    contains("others exchange it", "others may write its folder", refused(case, "--config", path))
    example = subprocess.run([Places.cuscope(), "agent", "--example-config"], capture_output=True, check=True).stdout
    path = secret(case, "example.ini", example.decode().replace("; ", "").replace("\n\n", "\n"), 0o644)
    contains("the example is no mistake but its sentences", "example.ini:2", refused(case, "--config", path))


STEALS = """import socket, sys, time
while True:
    with socket.socket() as thief:
        try:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind(("127.0.0.1", int(sys.argv[1])))
            thief.listen()
            print("the port is mine", flush=True)
            time.sleep(60)
        except OSError:
            time.sleep(0.0002)
"""


def test_node_page_runs_its_own_script_alone(case):
    node = Node(case)
    status, headers, text = node.get("/")
    checks.equal("status", 200, status)
    checks.equal("it is one", True, text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>"))
    for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "script-src 'sha256-"):
        checks.contains("policy", part, headers["Content-Security-Policy"])
    checks.equal("that of figures", "default-src 'none'", node.get()[1]["Content-Security-Policy"])
    for path in ("/", "/metrics"):
        headers = node.get(path, headers={"Origin": "http://evil.example"})[1]
        checks.equal("no leave to read", None, headers["Access-Control-Allow-Origin"])
        checks.equal("no other site's", "same-origin", headers["Cross-Origin-Resource-Policy"])
    checks.equal("another name", 421, node.get("/", headers={"Host": "evil.example"})[0])


def test_node_tells_how_old_its_figures_are(case):
    node = Node(case)
    ages = [node.metrics()["cuscope_agent_figures_age_seconds", ()] for _ in range(20)]
    if not 0 <= min(ages) <= max(ages) < 2 or max(ages) == min(ages):
        raise Failure(f"ages: {ages}")


def test_node_page_asks_for_the_token(case):
    """A browser sends it as a password, for what can be looked at and not for what does something."""
    word = "correct-horse-battery"
    os.chmod(case.folder, 0o755)
    node = Node(case, options=["--token-file", secret(case, "token", word + "\n")])

    def basic(password):
        return {"Authorization": "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()}
    for path, kind in (("/", "Basic"), ("/metrics", "Bearer"), ("/record?request=1", "Bearer")):
        status, headers, _ = node.get(path)
        checks.equal(f"{path} without", 401, status)
        checks.contains(f"{path} asks", kind, headers["WWW-Authenticate"])
    for path in ("/", "/metrics"):
        checks.equal(f"{path} with it", 200, node.get(path, headers=basic(word))[0])
        checks.equal(f"{path} with another", 401, node.get(path, headers=basic(word + "x"))[0])
        checks.equal(f"{path} as programs send it", 200, node.get(path, headers={"Authorization": f"Bearer {word}"})[0])
    for method in ("GET", "POST"):
        checks.equal(f"{method} /record", 401, node.get("/record", method, headers=basic(word))[0])


def test_node_token_and_tls(case):
    os.chmod(case.folder, 0o755)
    key, cert = certificate(case)
    word = "correct-horse-battery"
    token = secret(case, "token", word + "\n")
    node = Node(case, options=["--tls-cert", cert, "--tls-key", key, "--token-file", token], wait=False)
    wait_until(lambda: "serving on https" in node.process.err(), "the agent to serve", 30)

    def status(*headers, path="/metrics"):
        command = ["curl", "-s", "-o", case.path("body"), "-w", "%{http_code}", "--cacert", cert]
        for header in headers:
            command += ["-H", header]
        return subprocess.run([*command, f"https://127.0.0.1:{node.port}{path}"], capture_output=True,
                              timeout=20).stdout.decode()
    wait_until(lambda: status(path="/healthz") == "200", "the first snapshot")
    checks.equal("without a token", "401", status())
    for wrong in (word[:-1], word + "x", "", word.upper(), "x" * 5000):
        checks.equal("a wrong token", "401", status(f"Authorization: Bearer {wrong}"))
    checks.equal("the wrong kind", "401", status(f"Authorization: Basic {word}"))
    checks.equal("the token", "200", status(f"Authorization: Bearer {word}"))
    if b"HTTP/1.1 200" in raw(node, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        raise Failure("it was served without TLS")


def test_node_reload(case):
    node = Node(case, "[agent]\nage = 0\ninterval = 200ms\ntop = 0\n")
    process = case.program("gpuloop", 30, 100, stdin=subprocess.PIPE)
    wait_until(lambda: node.metrics().get(("cuscope_process_launches_total", (("process", "other"),)), 0) > 0,
               "launches", 30)
    checks.equal("no series of its own", {}, node.of(process.pid))
    node.write("[agent]\nage = 0\ninterval = 200ms\ntop = 50\n")
    node.process.signal(signal.SIGHUP)
    wait_until(lambda: "read anew" in node.process.err(), "the settings to be read", 60)
    node.begun()
    wait_until(lambda: node.of(process.pid).get("launches_total", 0) > 0, "a series of its own")
    before = node.metrics()["cuscope_launches_total", ()]
    node.write("[agent]\ntop = a few\n")
    node.process.signal(signal.SIGHUP)
    wait_until(lambda: "stay as they were" in node.process.err(), "the mistake to be told", 60)
    at_least("counters go on", before, node.metrics()["cuscope_launches_total", ()])


def test_node_reload_while_it_starts(case):
    """A service manager calls it running, and may have it reload, from its first instruction on."""
    node = Node(case, wait=False)

    def blocks_hangup():
        with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
            blocked = next(line for line in file if line.startswith("SigBlk"))
        return int(blocked.split()[1], 16) >> (signal.SIGHUP - 1) & 1

    wait_until(blocks_hangup, "SIGHUP to be blocked")
    node.process.signal(signal.SIGHUP)
    node.begun()
    wait_until(lambda: "read anew" in node.process.err(), "the settings to be read", 60)


def test_node_reload_with_what_cannot_be_used(case):
    """The server goes on as it was, on its socket: another user who waits for the port never gets it."""
    os.chmod(case.folder, 0o755)
    key, cert = certificate(case)
    tls = f"[tls]\ncertificate = {cert}\nkey = {key}\n"
    node = Node(case)
    waits = case.start("setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c", STEALS, str(node.port))
    for number, wrong in enumerate((tls, "[recorder]\nenabled = yes\n[spool]\ndirectory = /dev/null\n"), 1):
        if wrong is tls:
            secret(case, os.path.basename(key), "no key\n")
        node.write("[agent]\nage = 0\ninterval = 200ms\n" + wrong)
        node.process.signal(signal.SIGHUP)
        wait_until(lambda: node.process.err().count("stay as they were") == number, "the mistake to be told", 60)
        checks.equal("it serves", 200, node.get()[0])
    for number in range(1, 9):
        node.write("[agent]\nage = 0\ninterval = 200ms\n")
        node.process.signal(signal.SIGHUP)
        wait_until(lambda: node.process.err().count("read anew") == number, "the settings to be read", 60)
        checks.equal("it serves", 200, node.get()[0])
    checks.equal("who waits for the port has got nothing", "", waits.out())


def test_node_shares_of_a_gpu_by_process(case):
    """What NVML knows of processes: of those with series by their number, of all others together."""
    def tell(text):
        with open(case.path("gpu.new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(case.path("gpu.new"), case.path("gpu"))

    def told(name):
        return {(labels["gpu"], labels.get("pid"), labels["process"]): value
                for (key, pairs), value in node.metrics().items()
                if key == "cuscope_process_gpu_" + name for labels in [dict(pairs)]}

    tell("processes 0\n")
    case.env.update(LD_LIBRARY_PATH=Places.libraries() + ":" + os.path.join(Places.build, "simnvml"), SIMNVML_GPUS="2",
                    SIMNVML_FILE=case.path("gpu"))
    node = Node(case)
    loop = case.program("gpuloop", 30, 100, name="loop", stdin=subprocess.PIPE)
    wait_until(lambda: node.of(loop.pid), "series of the process")
    checks.equal("nobody's memory", {}, told("memory_bytes"))
    tell(f"processes 3\npid {loop.pid}\nprocess_mib 512\ngpu0.process_busy 60\ngpu1.process_busy 0\n")
    mine, others = (str(loop.pid), "gpuloop"), (None, "other")
    wait_until(lambda: told("memory_bytes") == {(gpu, *who): n * 2.0**29 for gpu in "01" for who, n in ((mine, 1), (others, 2))},
               "memory by process")
    checks.equal("shares", {("0", *mine): 0.6, ("0", *others): 1.2, ("1", *mine): 0, ("1", *others): 0}, told("busy_ratio"))
    checks.contains("the help", "of other: the sum of such shares, which can be above 1", node.get()[2])
    tell("fail.processes 3\n")
    wait_until(lambda: not told("memory_bytes"), "no memory of a GPU that does not tell")


def test_node_gpuprobe_names(case):
    node = Node(case, options=["--names", "gpuprobe"])
    process = case.program("live", "stay", 4000, stdin=subprocess.PIPE)

    def leaks():
        return [value for (name, labels), value in node.metrics().items()
                if name == "cuda_memory_leaks" and dict(labels)["pid"] == str(process.pid)]
    wait_until(lambda: sorted(leaks()) == [1000.0] * 5 + [2000.0] * 3, "its live memory")


@alone
def test_node_processes_that_come_and_go_leave_nothing(case):
    node = Node(case, "[agent]\nage = 0\ninterval = 200ms\ntop = 5\n")

    def rest():
        figures = node.metrics()
        return figures["cuscope_agent_open_files", ()], figures["cuscope_processes_seen_total", ()]
    for _ in range(20):
        case.program("copies").wait()
    wait_until(lambda: rest()[1] >= 20, "the first of them")
    files = rest()[0]
    for _ in range(80):
        case.program("copies").wait()
    wait_until(lambda: rest()[1] >= 100, "all of them")
    at_most("open files", files + 30, rest()[0])
    series = {labels for (name, labels) in node.metrics() if name == "cuscope_process_info"}
    at_most("series", 5, len(series))


def reads_of(pid):
    """How often a process and those that it started have read something."""
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        own = int(dict(line.split(": ") for line in file.read().splitlines())["syscr"])
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return own + sum(reads_of(int(child)) for child in file.read().split())


@alone
def test_node_does_not_look_at_programs_without_cuda(case):
    node = Node(case, "[agent]\ninterval = 1s\n")
    many = ["sh", "-c", "for i in $(seq 300); do env true; done"]
    subprocess.run(["sh", "-c", "env true"], check=True)  # its files are looked into, once
    time.sleep(0.2)
    before = reads_of(node.process.pid)
    subprocess.run(many, check=True)
    at_most("reads", before + 900, reads_of(node.process.pid))
