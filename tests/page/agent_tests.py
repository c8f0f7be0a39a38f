# SPDX-License-Identifier: MIT
"""The node agent's page in a headless Chromium, beside a server that plays the agent, and beside the agent itself."""

import contextlib
import os
import socket
import subprocess
import time

from browser import Browser
from browser_tests import axe_finds, nothing_failed, picture, size, wait
from case import Skip, equal
from live_server import AgentServer, account as live_account, agent_figures, of_process
from live_tests import HOSTILE, answers, column

MAIN = "#processes .table:nth-child(1)"
THREE = {7: ("slow", 3), 8: ("fast", 900), 9: ("middle", 10)}


class Agent:
    """with Agent(case, figures) as (browser, server): shows rates"""

    def __init__(self, case, figures, ready="cuscopeAgent.readings.spanNs > 0"):
        self.server, self.browser, self.ready = AgentServer(case.build, figures), Browser(case), ready

    def __enter__(self):
        server, browser = self.server.__enter__(), self.browser.__enter__()
        size(browser, 1600, 1000)
        browser.url = server.url
        browser.send("Page.navigate", url=server.url)
        wait(browser, f"window.cuscopeAgent && {self.ready}")
        return browser, server

    def __exit__(self, *exception):
        self.browser.__exit__(*exception)
        self.server.__exit__(*exception)


def text(browser, selector):
    return browser.evaluate(f"document.querySelector('{selector}').textContent")


def test_agent_page_shows_each_snapshot(case):
    """Counters as rates, gauges as they are, what they mean on hover; nothing but /metrics and /live was asked for."""
    with Agent(case, lambda snapshot: agent_figures(snapshot, THREE)) as (browser, server):
        equal("by launches", ["8", "9", "7"], column(browser, "PID", MAIN))
        equal("names", ["fast", "middle", "slow"], column(browser, "PROCESS", MAIN))
        equal("memory", ["8 MiB", "9 MiB", "7 MiB"], column(browser, "DEVICE LIVE", MAIN))
        equal("who", ["root"] * 3, column(browser, "USER", MAIN))
        equal("GPU", ["50 %", "3 GiB"], browser.evaluate("[...document.querySelectorAll('#gpus article b')].map((its) => its.textContent)"))
        equal("meaning", "About cuscope_process_launches_total: in the last interval, a second (cuscope_process_launches_total)",
              browser.evaluate("[...document.querySelectorAll('#processes th button')].find((its) => its.textContent === 'LAUNCHES/s').dataset.about"))
        total = column(browser, "LAUNCHES", MAIN)[0]
        wait(browser, f"[...document.querySelectorAll('#processes tbody tr')][0].cells[3].textContent !== '{total}'")
        equal("asked", {"/", "/metrics", "/live"}, set(server.asked) - {"/favicon.ico"})
        rates = [float(rate.replace(",", "")) for rate in column(browser, "LAUNCHES/s", MAIN)]
        equal("rates", True, 500 < rates[0] < 1000 and 1 < rates[2] < 4)
        nothing_failed(browser)


def test_agent_page_shows_metrics_that_it_never_heard_of(case):
    """In tables of their labels, sorted and filtered as all are."""
    def figures(snapshot):
        return agent_figures(snapshot, THREE, cuscope_process_warps_total={of_process(8, "fast"): 7 * snapshot}, cuscope_new_bytes={"": 1 << 20},
                             cuda_memory_leaks={'pid="7",where="a"': 3})
    with Agent(case, figures) as (browser, _):
        equal("sums", [True, False, False], [value != "–" for value in column(browser, "WARPS", MAIN)])
        equal("a figure", True, "new1 MiB" in text(browser, "#total .figures"))
        equal("a table", ["a"], column(browser, "WHERE", "#leaks .table"))
        browser.evaluate("(() => { const input = document.querySelector('#processes input'); input.value = 'mid'; input.dispatchEvent(new Event('input')) })()")
        equal("filtered", ["9"], column(browser, "PID", MAIN))
        nothing_failed(browser)


def commands(browser):
    return browser.evaluate("[...document.querySelectorAll('#ask code')].map((its) => its.textContent)")


def test_agent_page_says_what_makes_an_account(case):
    """Of the processes that launch most and of GPUs, as commands to copy; figures of what is no number are in none."""
    def figures(snapshot):
        return agent_figures(snapshot, {7: ("slow", 3), 8: ("fast", 900), 9: ("middle", 10), 10: ("least", 1)},
                             cuscope_process_launches_total={'pid="1;reboot",process="x"': 10**6 * snapshot})
    with Agent(case, lambda snapshot: agent_figures(snapshot, {**THREE, 10: ("least", 1)})) as (browser, _):
        equal("commands", ["sudo cuscope why -p 8", "sudo cuscope why -p 9", "sudo cuscope why -p 7", "sudo cuscope why --gpu-of 0",
                           "sudo cuscope top --web --why"], commands(browser))
        equal("of", "fast", text(browser, "#ask li .note"))
        equal("why", True, "stacks, what threads wait for, and GPU times" in text(browser, "#ask"))
        browser.evaluate("(() => { globalThis.kept = document.querySelector('#ask li'); document.querySelector('#ask li button').click() })()")
        wait(browser, "/Copied: sudo cuscope why -p 8|refuses to copy/.test(document.querySelector('#ask [role=status]').textContent)")
        seen = browser.evaluate("cuscopeAgent.readings.snapshots")
        wait(browser, f"cuscopeAgent.readings.snapshots > {seen} + 1")
        equal("it stays", True, browser.evaluate("kept.isConnected"))
        nothing_failed(browser)
    with Agent(case, figures) as (browser, _):
        equal("none of what is no number", ["sudo cuscope why --gpu-of 0", "sudo cuscope top --web --why"], commands(browser))
        nothing_failed(browser)


def of_calls(second):
    """As of what a flight recorder holds."""
    it = live_account(second, not_known=["what the host did outside of CUDA for 99 % of the time was not recorded"])
    it["why"].update(first=None, gpu_times="none")
    return it


def test_agent_page_shows_the_account(case):
    """Of calls alone with what would tell more; of what why records with whose it is. It is asked for once, with a header that other sites may not send."""
    with Agent(case, lambda snapshot: agent_figures(snapshot, THREE)) as (browser, server):
        equal("none", (True, "Where the time goes"), (browser.evaluate("document.getElementById('why').hidden"), text(browser, "#ask h2")))
        server.account, server.account_of = of_calls(3), {"account": "calls", "processes": []}
        wait(browser, "!document.getElementById('why').hidden && !!document.querySelector('#why article')")
        equal("not known", True, "outside of CUDA for 99 %" in text(browser, "#why"))
        equal("lacks", ("What would tell more", True), (text(browser, "#ask h2"), "calls that the flight recorder holds" in text(browser, "#ask")))
        equal("commands", "sudo cuscope why -p 8", commands(browser)[0])
        equal("header", ("1", "text/event-stream"), (server.looked["Cuscope-Look"], server.looked["Accept"]))
        browser.evaluate("(() => { globalThis.kept = document.querySelector('#why article') })()")
        time.sleep(2.5)
        equal("it stays", True, browser.evaluate("kept.isConnected"))
        equal("its number", True, server.looked["Last-Event-ID"].startswith("1."))
        equal("when", True, bool(browser.evaluate("/^Of 10 s, until [1-9] s ago\\.$/.test(document.querySelector('#why .note').textContent)")))
        server.account, server.account_of = live_account(9), {"account": "whole", "processes": [{"pid": 8, "name": HOSTILE}]}
        wait(browser, "/Change first|take the sleep away/.test(document.getElementById('why').textContent)")
        equal("of", True, "(pid 8)" in text(browser, "#ask") and HOSTILE in text(browser, "#ask"))
        equal("commands", [], commands(browser))
        server.account = {"state": "failed", "sentence": "the processes have ended <b>"}
        wait(browser, "document.querySelector('#why .note').textContent === 'the processes have ended <b>'")
        server.account = None
        wait(browser, "document.getElementById('why').hidden")
        nothing_failed(browser)


def test_agent_page_shows_figures_without_an_account(case):
    """Where what comes is no account: the page goes on."""
    with Agent(case, lambda snapshot: agent_figures(snapshot, THREE)) as (browser, server):
        for account, of in (({"state": 7}, []), ({"state": "answer", "why": 7, "left_out": "x"}, {"account": "__proto__", "processes": "x"}),
                            ({"state": "answer", "why": {"gpus": [7, {"account": "x"}], "first": 7, "not_known": 3}}, {"account": "whole", "processes": [None, 7, {}]})):
            server.account, server.account_of = account, of
            seen = browser.evaluate("cuscopeAgent.readings.snapshots")
            wait(browser, f"cuscopeAgent.readings.snapshots > {seen} + 2")
        equal("figures", ["8", "9", "7"], column(browser, "PID", MAIN))
        nothing_failed(browser)


def test_agent_page_names_are_text(case):
    def figures(snapshot):
        labels = of_process(7, HOSTILE) + ',kind="\u202e\\n\\\\"'
        return agent_figures(snapshot, {7: (HOSTILE, 3)}, cuscope_process_live_bytes={labels: 5},
                             **{"cuscope_lost_events_total": {'reason="<img src=x>"': 4}, "cuscope_errors_total": {'function="<b>x</b>",code="__proto__"': snapshot}})
    with Agent(case, figures) as (browser, _):
        equal("name", [HOSTILE], column(browser, "PROCESS", MAIN))
        equal("kind", True, "\\u{202e}\\u{a}\\" in text(browser, "#processes"))
        equal("nothing was made of it", 0, browser.evaluate("document.querySelectorAll('img, b b, td b').length"))
        equal("missed", ["4 lost events (<img src=x>): About cuscope_lost_events_total"],
              browser.evaluate("[...document.querySelectorAll('#missed li')].map((its) => its.textContent)"))
        equal("in text", True, "<b>x</b>" in text(browser, "#total"))
        nothing_failed(browser)


def test_agent_page_says_why_there_are_no_figures(case):
    """And goes on when there are some."""
    state = {"refuses": True}

    def figures(snapshot):
        return (503, "The figures are old; /healthz says how old.\n") if state["refuses"] else agent_figures(snapshot, THREE)
    with Agent(case, figures, ready="!document.querySelector('main > .box').hidden") as (browser, _):
        equal("told", True, "The figures are old; /healthz says how old." in text(browser, "main > .box"))
        state["refuses"] = False
        wait(browser, "cuscopeAgent.readings.spanNs > 0 && document.querySelector('main > .box').hidden")
        state["refuses"] = True
        wait(browser, "/No figures since [3-9] s/.test(document.querySelector('main > .box').textContent)")
        equal("rows stay", ["8", "9", "7"], column(browser, "PID", MAIN))


def test_agent_page_asks_for_nothing_while_nobody_looks(case):
    with Agent(case, lambda snapshot: agent_figures(snapshot, THREE)) as (browser, server):
        browser.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
        time.sleep(2.5)
        asked = len(server.asked)
        time.sleep(2.5)
        equal("asked", asked, len(server.asked))
        browser.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        wait(browser, f"cuscopeAgent.readings.snapshots > {server.events}")
        nothing_failed(browser)


def test_agent_page_asks_once_for_each_snapshot(case):
    """Each second where there are more of them; not more often than there is something new."""
    def figures(snapshot):
        return agent_figures(snapshot, THREE, **{"cuscope_agent_snapshots_total": {"": begin + int((time.monotonic() - began) / 3)},
                                                 "cuscope_agent_figures_age_seconds": {"": (time.monotonic() - began) % 3}})
    begin, began = 5, time.monotonic()
    with Agent(case, figures) as (browser, server):
        asked = server.asked.count("/metrics")
        time.sleep(9)
        equal("some four times", True, 3 <= server.asked.count("/metrics") - asked <= 5)
        nothing_failed(browser)


def test_agent_page_many_series(case):
    """Of 500 processes the first 50 have rows."""
    with Agent(case, lambda snapshot: agent_figures(snapshot, {pid: (f"p{pid}", pid) for pid in range(1, 501)})) as (browser, _):
        equal("rows", 50, len(column(browser, "PROCESS", MAIN)))
        equal("first", "500", column(browser, "PID", MAIN)[0])
        nothing_failed(browser)


def test_agent_page_of_the_agent_itself(case):
    """With a program of the simulated driver: every family has its place."""
    program, driver = os.path.join(case.build, "programs", "loop"), os.path.join(case.build, "simcuda")
    if os.geteuid() or not os.path.exists(program) or not os.path.exists(driver):
        raise Skip("it traces: root, make test-programs simcuda")
    libraries = ":".join(os.path.join(case.build, folder) for folder in ("simcuda/push", "simcuda", "simnvml"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    with contextlib.ExitStack() as ended:
        def start(*words, **more):
            process = ended.enter_context(subprocess.Popen(words, env=dict(os.environ, LD_LIBRARY_PATH=libraries, **more), stdin=subprocess.PIPE,
                                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            ended.callback(process.kill)
            return process
        loop = start(program, "60", "200", RANK="3", SLURM_JOB_ID="4711")
        config = case.path("agent.ini")
        with open(config, "w") as file:
            file.write("[agent]\nage = 0\ninterval = 500ms\ntop = 500\n")
        start(os.path.join(case.build, "cuscope"), "agent", "--listen", listen, "--config", config, "--library", os.path.join(driver, "push", "libcuda.so.1"))
        answers(f"http://{listen}/healthz")
        browser = ended.enter_context(Browser(case))
        size(browser, 1600, 1000)
        browser.url = f"http://{listen}/"
        browser.send("Page.navigate", url=browser.url)
        wait(browser, f"window.cuscopeAgent?.readings.spanNs > 0 && [...document.querySelectorAll('#processes td')].some((its) => its.textContent === '{loop.pid}')")
        at = column(browser, "PID", MAIN).index(str(loop.pid))
        wait(browser, f"+document.querySelectorAll('#processes tbody')[0].rows[{at}]?.cells[2].textContent > 20")
        equal("job", True, "4711" in column(browser, "SLURM JOB", MAIN))
        equal("GPU", "GPU0 NVIDIA Simulated 0", text(browser, "#gpus h3"))
        equal("hidden", [], browser.evaluate("[...document.querySelectorAll('#total, #gpus, #processes, #agent')].filter((its) => its.hidden).map((its) => its.id)"))
        equal("more", True, browser.evaluate("document.getElementById('more').hidden"))
        browser.evaluate("document.querySelector('#agent details').open = true")
        wait(browser, "document.querySelectorAll('#agent .figure').length > 10")
        families = set(browser.evaluate("cuscopeAgent.readings.families.map(({ name }) => name)"))
        shown = " ".join(browser.evaluate("[...document.querySelectorAll('[data-about]')].map((its) => its.dataset.about)"))
        equal("nowhere", set(), {name for name in families if f"({name})" not in shown and not name.endswith(("_info", "_start_time_seconds"))} - zeroes(browser))
        nothing_failed(browser)


def zeroes(browser):
    """Families with labels of which all is 0: they have no rows."""
    return set(browser.evaluate("cuscopeAgent.readings.families.filter(({ samples }) => samples.every(({ value, labels }) => !value && labels.length)).map(({ name }) => name)"))


def busy(snapshot):
    ranks = {f'{of_process(7 + rank, "train")},communicator="5eab303b",rank="{rank}"': rank for rank in range(4)}
    return agent_figures(snapshot, {7 + rank: ("train", 600 + rank) for rank in range(4)}, cuscope_errors_total={'function="cuMemAlloc_v2",code="CUDA_ERROR_OUT_OF_MEMORY"': 3},
                         cuscope_rank_late_seconds_total={labels: rank * snapshot / 10 for labels, rank in ranks.items()},
                         cuscope_process_errors_total={of_process(8, "train"): snapshot},
                         **{"cuscope_lost_events_total": {'reason="late"': 3}})


def test_agent_page_pictures(case):
    """Light and dark, narrow and wide: kept by --keep, to be looked at. Nothing is wider than the page."""
    with Agent(case, busy) as (browser, server):
        server.account, server.account_of = live_account(9), {"account": "whole", "processes": [{"pid": 7, "name": "train"}]}
        wait(browser, "!!document.querySelector('#why article')")
        equal("fails", ["8"], browser.evaluate("[...document.querySelectorAll('#processes tr.failing')].map((row) => row.cells[0].textContent)"))
        for width, height in ((800, 1000), (1920, 1080), (3840, 2160)):
            for dark in (False, True):
                size(browser, width, height, dark)
                time.sleep(0.4)
                equal(f"wider than {width}", True, browser.evaluate("document.documentElement.scrollWidth") <= width)
                picture(case, browser, f"agent_{width}_{'dark' if dark else 'light'}", whole=True)
        nothing_failed(browser)


def test_agent_page_axe_finds_nothing(case):
    with Agent(case, busy) as (browser, server):
        server.account, server.account_of = of_calls(9), {"account": "calls", "processes": []}
        wait(browser, "!!document.querySelector('#why article')")
        browser.evaluate("document.querySelector('#agent details').open = true")
        axe_finds(case, browser)


def all_tests():
    return [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
