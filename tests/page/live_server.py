# SPDX-License-Identifier: MIT
"""Plays `cuscope top --web`: the page at /, an event each time that somebody asks for /live. And the node agent, with /metrics."""

import base64
import hashlib
import http.server
import json
import math
import os
import threading
import zlib

GIB = 1 << 30


def numbers(calls, launches, errors, rate, failing=0.0):
    return {"calls": calls, "calls_per_second": float(rate), "errors": errors, "errors_per_second": float(failing), "launches": launches,
            "launches_per_second": rate / 3, "graph_launches": 0, "graph_launches_per_second": 0.0, "set_bytes": 0, "set_bytes_per_second": 0.0,
            "sync_ns": calls * 100}


def transfers(second, rate):
    return {way: {"copies": 10 * second, "copies_per_second": 10.0, "bytes": int(rate * second), "bytes_per_second": float(rate)} for way in ("H2D", "D2H")}


def process(pid, second, rate, calls=None, name="python3", kernels=("volta_sgemm_128x64_nn", "void at::native::reduce<float, 4>(float*, int)"), **more):
    memory = {"all": {"allocations": 30 + second, "bytes": GIB * (2 + pid % 5), "peak_bytes": GIB * (3 + pid % 5)}}
    memory["device"] = dict(memory["all"])
    return {"pid": pid, "name": name, "user": "root", "command": name + " /srv/train.py", "ended": False, "entries_only": False, "threads": 4,
            **numbers(int(rate * second) if calls is None else calls, int(rate * second / 3), 0, rate), "sync_share": 0.16, "gpu_memory_bytes": 4 * GIB, "gpu_share": None, "gpu_time_ns": 0,
            "memory": memory, "transfers": transfers(second, 9.1e7),
            "functions": [{"name": f"cu{call}", "calls": n * second, "calls_per_second": float(n), "errors": 0, "time_ns": n * second * 9000, "p50_ns": 8000 + n, "p99_ns": 120000 + n}
                          for call, n in (("LaunchKernel", 500), ("MemcpyHtoDAsync_v2", 100), ("StreamSynchronize", 20))],
            "kernels": [{"name": kernel, "resolved": True, "launches": (300 - i) * second, "launches_per_second": 300.0 - i, "gpu_runs": 0, "gpu_time_ns": 0} for i, kernel in enumerate(kernels)],
            "streams": [{"stream": handle, "launches": n * second, "launches_per_second": float(n), "copies": second, "copy_bytes": 4096 * second, "copy_bytes_per_second": 4096.0}
                        for handle, n in (("0x0", 10), ("0x562b0987dc40", 290))], **more}


def gpu(index, second):
    return {"name": "NVIDIA H200", "busy_percent": int(55 + 40 * math.sin(second / 7 + index)), "memory_used_bytes": (20 + index) * GIB, "memory_total_bytes": 141 * GIB,
            "power_mw": int(4e5 + 2e5 * math.sin(second / 9 + index)), "power_limit_mw": 700000, "temperature_c": 52, "sm_percent": None, "tensor_percent": None, "dram_percent": None}


def page(processes, second, gpus=2, **more):
    rate = sum(its["calls_per_second"] for its in processes if not its["ended"])
    total = {"processes": len(processes), **numbers(sum(its["calls"] for its in processes), sum(its["launches"] for its in processes), sum(its["errors"] for its in processes), rate),
             "memory": {"all": {"allocations": 9, "bytes": sum(its["memory"]["all"]["bytes"] for its in processes), "peak_bytes": 0}}, "transfers": transfers(second, 9.1e7 * len(processes))}
    return {"target": "all processes", "interval_ns": 1000000000, "counting_ns": second * 1000000000, "gpus": [gpu(i, second) for i in range(gpus)], "processes": processes,
            "gone": {"processes": 0, **numbers(0, 0, 0, 0.0), "memory": {}, "transfers": {}}, "total": total, "overhead_percent": 2.9, "estimate_scale": 1.0, "own_cpu_percent": 2.1,
            "missed": {"complete": True, "lost": {"ring_full": 0, "late": 0}, "hooks": []}, **more}


def account(second=0, **more):
    """Of ten seconds, as an event "why" has it."""
    place = [{"file": "/srv/train.py", "line": 40, "function": "train"}, {"file": "/srv/data.py", "line": 7, "function": "fetch"}]
    cause = {"cause": "sleep", "ns": 8_000_000_000, "place": place, "pid": 101, "tid": 101, "thread": "python3", "through": []}
    rest = {"cause": "rest", "ns": 500_000_000, "place": [], "through": []}
    gpu = {"gpu": 0, "pid": 101, "process": "python3", "ns": 10_000_000_000, "steps": {"count": 1000, "ns": 10_000_000},
           "account": [{"percent": 80.0, **cause}, {"percent": 15.0, **rest, "cause": "kernels"}, {"percent": 5.0, **rest}]}
    first = {"gpu": 0, "of_pid": 101, **cause, "gain": {"factor": 4.5, "at_most": 5.0, "step_ns": 2_000_000, "then": "kernels"}, "ns_per_step": 8_000_000,
             "sure": "yes", "why": "Sure: 1000 waits.", "try": "take the sleep away"}
    return {"state": "answer", "from_ns": second * 10**9, "until_ns": (second + 10) * 10**9, "left_out": [], "text": "in words\nand more",
            "why": {"schema": "cuscope-why-1", "gpus": [gpu], "first": first, "next": [], "not_known": [], **more}}


class LiveServer:
    """with LiveServer(build, figures) as server: figures(number of the event, from 1 on) is what JSON is made of, or a text; None: no figures; "again": the event before"""

    script = "live.js"

    def __init__(self, build, figures, retry_ms=150):
        self.figures, self.retry_ms, self.events, self.asked, self.last = figures, retry_ms, 0, [], b""
        self.refuses = False  # a browser gives up where it is told of an error
        self.account = None  # what the event "why" has, before each of figures
        parts = {}
        for part in (self.script, "page.css"):
            with open(os.path.join(build, "page", part), "rb") as file:
                parts[part] = file.read()
        hashes = {part: base64.b64encode(hashlib.sha256(text).digest()).decode() for part, text in parts.items()}
        self.policy = (f"default-src 'none'; style-src 'sha256-{hashes['page.css']}'; script-src 'sha256-{hashes[self.script]}'; connect-src 'self'; "
                       "frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
        self.html = (b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                     b"<title>cuscope top</title><style>" + parts["page.css"] + b'</style></head><body><div id="page"></div><script>' + parts[self.script] + b"</script></body></html>")
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self)

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                """A browser that closes its page while it is answered."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.http.shutdown()
        self.http.server_close()

    def answer(self, request):
        self.asked.append(request.path)
        if request.path == "/":
            self.send(request, 200, "text/html; charset=utf-8", self.html)
        elif request.path == "/live" and not self.refuses:
            self.send(request, 200, "text/event-stream", self.event())
        else:
            self.send(request, 503 if self.refuses else 404, "text/plain", b"")

    def event(self):
        figures = self.figures(self.events + 1)
        if figures is None:
            return f"retry: {self.retry_ms}\n\n".encode()
        if figures == "again":
            return self.last
        self.events += 1
        data = figures if isinstance(figures, str) else json.dumps(figures)
        account = "" if self.account is None else f"event: why\ndata: {self.account if isinstance(self.account, str) else json.dumps(self.account)}\n\n"
        self.last = f"{account}retry: {self.retry_ms}\nid: {self.events}\ndata: {data}\n\n".encode()
        return self.last

    def send(self, request, status, kind, body):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Content-Security-Policy", self.policy)
        request.send_header("Cache-Control", "no-store")
        request.end_headers()
        request.wfile.write(body)


class AgentServer(LiveServer):
    """The same with figures(number of the snapshot, from 1 on): samples by their families' names, or a status and its text"""

    script = "agent.js"
    account_of = {"account": "none", "processes": []}
    looked = None  # the headers of who asked for the account last

    def answer(self, request):
        self.asked.append(request.path)
        if request.path == "/":
            self.send(request, 200, "text/html; charset=utf-8", self.html)
        elif request.path == "/metrics":
            self.events += 1
            figures = self.figures(self.events)
            status, text = figures if isinstance(figures, tuple) else (200, exposition(self.events, figures))
            self.send(request, status, "text/plain; version=0.0.4; charset=utf-8", text.encode())
        elif request.path == "/live":
            self.looked = request.headers
            self.send(request, 200, "text/event-stream", self.live())
        else:
            self.send(request, 404, "text/plain", b"")


    def live(self):
        """The account for each reader once, and what it is made of."""
        number = f"{zlib.crc32(json.dumps([self.account, self.account_of]).encode())}"
        account = json.dumps(self.account) if self.account and self.looked["Last-Event-ID"] != f"1.{number}" else ""
        return ((f"event: why\ndata: {account}\n\n" if account else "") +
                f"retry: 1000\nid: 1{'.' + number if self.account else ''}\ndata: {json.dumps(self.account_of)}\n\n").encode()


def exposition(snapshot, figures):
    lines = []
    for name, samples in {"cuscope_agent_snapshots_total": {"": snapshot}, "cuscope_agent_figures_age_seconds": {"": 0.1}, **figures}.items():
        lines += [f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}", f"# HELP {name} About {name}"]
        lines += [f"{name}{'{' + labels + '}' if labels else ''} {value}" for labels, value in samples.items()]
    return "\n".join(lines) + "\n"


def of_process(pid, name="python3"):
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'pid="{pid}",process="{text}"'


def agent_figures(snapshot, processes, **more):
    """processes: {pid: (name, launches a second)}"""
    of = {pid: of_process(pid, name) for pid, (name, _) in processes.items()}
    gpu = 'gpu="0",UUID="GPU-0",modelName="NVIDIA H200"'
    return {"cuscope_build_info": {'version="1.2.3"': 1}, "cuscope_launches_total": {"": 1000 * snapshot}, "cuscope_lost_events_total": {'reason="late"': 0},
            "cuscope_process_info": {f'{labels},user="root",command="{pid}"': 1 for pid, labels in of.items()},
            "cuscope_process_launches_total": {labels: processes[pid][1] * snapshot for pid, labels in of.items()},
            "cuscope_process_live_bytes": {labels + ',kind="device"': pid << 20 for pid, labels in of.items()},
            "cuscope_gpu_busy_ratio": {gpu: 0.5}, "cuscope_gpu_memory_used_bytes": {gpu: 3 << 30}, "cuscope_gpu_memory_total_bytes": {gpu: 141 << 30},
            "cuscope_recorder_up": {"": 1}, "cuscope_spool_bytes": {"": 5 << 20}, "cuscope_agent_cpu_seconds_total": {"": 0.002 * snapshot}, **more}
