# SPDX-License-Identifier: MIT
"""The live page in a headless Chromium, beside a server that plays `cuscope top --web`."""

import contextlib
import os
import socket
import subprocess
import time
import urllib.request

from browser import Browser
from browser_tests import axe_finds, nothing_failed, picture, size, wait
from case import Skip, equal
from live_server import LiveServer, account, page, process

HOSTILE = "</script><img src=x onerror=alert(1)>"


def names(browser):
    return browser.evaluate("[...document.querySelectorAll('#processes tbody tr')].map((row) => row.cells[0].textContent)")


def column(browser, name, table="#processes"):
    return browser.evaluate(f"(() => {{ const heads = [...document.querySelectorAll('{table} th')].map((head) => head.textContent), at = heads.indexOf('{name}');"
                            f"return [...document.querySelectorAll('{table} tbody tr')].map((row) => row.cells[at].textContent) }})()")


def sort(browser, name):
    browser.evaluate(f"[...document.querySelectorAll('#processes th button')].find((head) => head.textContent === '{name}').click()")


def three(second):
    return page([process(100 + i, second, rate, name=name) for i, (rate, name) in enumerate(((300, "slow"), (9000, "fast"), (1000, "middle")))], second)


class Live:
    """with Live(case, figures) as (browser, server): shows the second event, or what `ready` says."""

    def __init__(self, case, figures, ready="cuscopeLive.model.total.added > 1"):
        self.server, self.browser, self.ready = LiveServer(case.build, figures), Browser(case), ready

    def __enter__(self):
        server, browser = self.server.__enter__(), self.browser.__enter__()
        size(browser, 1600, 1000)
        browser.url = server.url
        browser.send("Page.navigate", url=server.url)
        wait(browser, f"window.cuscopeLive && {self.ready}")
        return browser, server

    def __exit__(self, *exception):
        self.browser.__exit__(*exception)
        self.server.__exit__(*exception)


def test_live_shows_each_event(case):
    """Figures move on, history grows, nothing but /live was asked for."""
    with Live(case, three) as (browser, server):
        equal("by calls", ["101", "102", "100"], column(browser, "PID"))
        equal("rates", ["9,000", "1,000", "300"], column(browser, "CALLS/s"))
        equal("all", "10,300", browser.evaluate("document.querySelector('#total b').textContent"))
        equal("GPUs", ["GPU0 NVIDIA H200", "GPU1 NVIDIA H200"], browser.evaluate("[...document.querySelectorAll('#gpus h3')].map((head) => head.textContent)"))
        equal("told", True, "now 10,300, at most 10,300" in browser.evaluate("document.querySelector('#total canvas').getAttribute('aria-label')"))
        first = server.events
        wait(browser, f"cuscopeLive.model.total.points(0).length > {first + 3}")
        equal("drawn", True, browser.evaluate("(() => { const c = document.querySelector('#total canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((byte) => byte) })()"))
        equal("asked for", {"/", "/live"}, set(server.asked) - {"/favicon.ico"})
        equal("nothing was missed", True, browser.evaluate("document.getElementById('missed').hidden"))
        nothing_failed(browser)


def test_live_sorts_and_filters_while_figures_come(case):
    """Order and filter stay, and so do the focus and the row that has it."""
    with Live(case, three) as (browser, server):
        sort(browser, "PID")
        equal("falling", ["102", "101", "100"], column(browser, "PID"))
        sort(browser, "PID")
        browser.evaluate("document.querySelector('#processes tbody button').focus(); window.row = document.querySelector('#processes tbody tr'); 0")
        events = server.events
        wait(browser, f"cuscopeLive.model.total.added > {events + 2}")
        equal("rising", ["100", "101", "102"], column(browser, "PID"))
        equal("the same row", [True, True], browser.evaluate("[window.row === document.querySelector('#processes tbody tr'), window.row.contains(document.activeElement)]"))
        browser.key("/")
        browser.type("101")
        wait(browser, "document.querySelectorAll('#processes tbody tr').length === 1")
        events = server.events
        wait(browser, f"cuscopeLive.model.total.added > {events + 2}")
        equal("filtered", ["101"], column(browser, "PID"))
        equal("typed", "101", browser.evaluate("document.activeElement.value"))
        nothing_failed(browser)


def test_live_keeps_the_focus_where_rows_change_places(case):
    def figures(second):
        return page([process(1, second, 100 + 900 * (second % 2), calls=second), process(2, second, 500, calls=second)], second)
    with Live(case, figures) as (browser, _):
        browser.evaluate("[...document.querySelectorAll('#processes tbody tr')].find((row) => row.cells[1].textContent === '1').querySelector('button').focus()")
        for first in ("1", "2", "1"):
            wait(browser, f"document.querySelector('#processes tbody tr').cells[1].textContent === '{first}'")
            equal("focused", "1", browser.evaluate("document.activeElement.closest('tr')?.cells[1].textContent"))
        nothing_failed(browser)


def test_live_opens_a_process(case):
    """By keyboard: its tables, its histories, its address; Escape closes it, and the focus is back."""
    with Live(case, three) as (browser, server):
        browser.evaluate("document.querySelector('#processes tbody button').focus()")
        browser.key("Enter")
        wait(browser, "!document.getElementById('process').hidden")
        equal("its name", "train.py · process 101", browser.evaluate("document.activeElement.textContent"))
        equal("tables", ["Kernels", "Functions", "Streams", "Memory by kind", "Transfers"],
              browser.evaluate("[...document.querySelectorAll('#process .table:not([hidden]) h3')].map((head) => head.textContent)"))
        equal("by time", ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"], column(browser, "FUNCTION", "#process .table:nth-child(2)"))
        equal("rate", "9,000", browser.evaluate("document.querySelector('#process b').textContent"))
        equal("history", True, browser.evaluate("cuscopeLive.model.historyOf('101').points(0).length") > 1)
        launches = column(browser, "LAUNCHES", "#process .table:nth-child(1)")
        wait(browser, f"document.querySelector('#process td:nth-child(2)').textContent !== '{launches[0]}'")
        equal("address", "#process-101", browser.evaluate("location.hash"))
        browser.send("Page.reload")
        wait(browser, "window.cuscopeLive?.model.page && document.querySelector('#process b')?.textContent === '9,000'")
        browser.key("Escape")
        equal("closed", ["", True], browser.evaluate("[location.hash, document.getElementById('process').hidden]"))
        equal("back", "101", browser.evaluate("document.activeElement.closest('tr')?.cells[1].textContent"))
        nothing_failed(browser)


def test_live_hostile_names_stay_text(case):
    def figures(second):
        odd = process(1, second, 5, name=HOSTILE, kernels=(HOSTILE, "right \u202e to left \u0007", "x" * 20000), user="<b>" + "u" * 5000, pod="\u202e", command=HOSTILE + " x", rank="\x1b[31m")
        return page([odd], second, target=HOSTILE, gpus_note=HOSTILE, missed={"complete": False, "lost": {HOSTILE: 1}, "hooks": [{"kind": HOSTILE, "name": "\u202e", "why": "w" * 9000}]})
    with Live(case, figures) as (browser, _):
        browser.evaluate("cuscopeLive.open('1')")
        equal("markup", [0, 0, 1], browser.evaluate("[document.images.length, document.querySelectorAll('b b, iframe, object').length, document.scripts.length]"))
        equal("kernels", [HOSTILE, "right \\u{202e} to left \\u{7}", 600], [name if len(name) < 100 else len(name) for name in column(browser, "KERNEL", "#process .table:nth-child(1)")])
        equal("escaped", "x #\\u{1b}[31m", names(browser)[0])
        equal("target", f"cuscope top: {HOSTILE}", browser.evaluate("document.title"))
        equal("missed", True, f"1 {HOSTILE}" in browser.evaluate("document.getElementById('missed').innerText"))
        equal("no mark of direction", False, browser.evaluate("/[\\u202e\\u0007\\u001b]/.test(document.body.textContent)"))
        for width in (800, 1920):
            size(browser, width, 1000)
            equal(f"wider than {width}", True, browser.evaluate("document.documentElement.scrollWidth") <= width)
        nothing_failed(browser)


def test_live_says_that_figures_stay_away(case):
    """And goes on when they come again; what cannot be read is counted."""
    sent = {"what": three}
    with Live(case, lambda second: sent["what"](second)) as (browser, server):
        sent["what"] = lambda second: None
        text = wait(browser, "!document.querySelector('main > .box').hidden && /^No figures since \\d+ s\\.$/.test(document.querySelector('main > .box').textContent) && document.querySelector('main > .box').textContent")
        equal("some", True, int(text.split()[3]) in (3, 4, 5))
        equal("faint", True, browser.evaluate("document.documentElement.classList.contains('stale')"))
        sent["what"] = three
        wait(browser, "document.querySelector('main > .box').hidden && !document.documentElement.classList.contains('stale')")
        sent["what"] = lambda second: "{" if second == server.events + 1 else None
        wait(browser, "/could not be read/.test(document.querySelector('main > .box').textContent)")
        equal("figures stay", 3, len(names(browser)))
        nothing_failed(browser)


def test_live_asks_again_where_it_was_refused(case):
    """A browser gives up then, the page does not."""
    with Live(case, three) as (browser, server):
        server.refuses = True
        wait(browser, "!document.querySelector('main > .box').hidden")
        server.refuses = False
        wait(browser, "document.querySelector('main > .box').hidden")
        equal("told by the browser alone", True, all("503" in failure for failure in browser.failures))


def test_live_waits_for_the_first_figures(case):
    ready = {"yes": False}
    with Live(case, lambda second: three(second) if ready["yes"] else None, "cuscopeLive.source") as (browser, _):
        time.sleep(0.5)
        equal("waits", "waiting for the first figures", browser.evaluate("document.querySelector('.facts').textContent"))
        ready["yes"] = True
        wait(browser, "document.querySelectorAll('#processes tbody tr').length === 3")
        nothing_failed(browser)


def test_live_the_same_event_again(case):
    """Is no figure more: top has none yet where its interval is longer than a browser waits."""
    with Live(case, three) as (browser, server):
        server.figures = lambda second: "again"
        asked = len(server.asked)
        while len(server.asked) < asked + 3:
            time.sleep(0.05)
        added = browser.evaluate("cuscopeLive.model.total.added")
        while len(server.asked) < asked + 8:
            time.sleep(0.05)
        equal("points", added, browser.evaluate("cuscopeLive.model.total.added"))
        server.figures = three
        wait(browser, f"cuscopeLive.model.total.added > {added + 1}")
        nothing_failed(browser)


def test_live_a_process_ends(case):
    """It stays as ended, then goes; where it is open its last figures stay."""
    there = {"is": "running"}

    def figures(second):
        processes = [process(100, second, 10), process(101, second, 500, ended=there["is"] == "ended")]
        return page(processes[:1] if there["is"] == "gone" else processes, second)
    with Live(case, figures) as (browser, _):
        browser.evaluate("cuscopeLive.open('101')")
        there["is"] = "ended"
        wait(browser, "document.querySelector('#processes').textContent.includes('train.py (ended)')")
        points = browser.evaluate("cuscopeLive.model.historyOf('101').points(0).length")
        there["is"] = "gone"
        wait(browser, "document.querySelectorAll('#processes tbody tr').length === 1")
        equal("told", "It has ended: these are its last figures.", browser.evaluate("document.querySelector('#process [role=status]').textContent"))
        equal("kept", [points, True], browser.evaluate("[cuscopeLive.model.historyOf('101').points(0).length, document.querySelectorAll('#process tbody tr').length > 5]"))
        browser.key("Escape")
        wait(browser, "!cuscopeLive.model.historyOf('101')")
        nothing_failed(browser)


def test_live_pauses(case):
    """The page stands still; its history does not."""
    with Live(case, three) as (browser, server):
        browser.key("p")
        facts = browser.evaluate("document.querySelector('.facts').textContent")
        added = browser.evaluate("cuscopeLive.model.total.added")
        wait(browser, f"cuscopeLive.model.total.added > {added + 8}")
        equal("still", facts, browser.evaluate("document.querySelector('.facts').textContent"))
        equal("told", "Paused: figures below stand still, counting goes on.", browser.evaluate("document.querySelector('main > .box').textContent"))
        browser.evaluate("document.querySelector('header button').click()")
        equal("goes on", False, facts == browser.evaluate("document.querySelector('.facts').textContent"))
        equal("quiet", True, browser.evaluate("document.querySelector('main > .box').hidden"))
        nothing_failed(browser)


def test_live_many_processes(case):
    """Of 1,000 the first 50 have rows, and 200 a history."""
    with Live(case, lambda second: page([process(i + 1, second, 1000 - i, kernels=()) for i in range(1000)], second, gpus=8)) as (browser, _):
        equal("rows", 50, len(names(browser)))
        equal("histories", 200, browser.evaluate("cuscopeLive.model.histories.size"))
        browser.evaluate("document.querySelector('#processes .more').click()")
        equal("more", 550, len(names(browser)))
        nothing_failed(browser)


def test_live_what_a_bound_leaves_out(case):
    """Is told beside the table, in numbers."""
    def figures(second):
        return page([process(1, second, 5, functions_left_out=1234)], second, processes_left_out=2936)
    with Live(case, figures) as (browser, _):
        browser.evaluate("cuscopeLive.open('1')")
        counts = "[...document.querySelectorAll('%s .count[role=status]')].map((count) => count.textContent)"
        equal("processes", ["1 row, 2,936 more that do less are left out"], browser.evaluate(counts % "#processes"))
        equal("functions", True, ", 1,234 more that do less are left out" in browser.evaluate(counts % "#process")[1])
        equal("kernels", False, "left out" in browser.evaluate(counts % "#process")[0])
        nothing_failed(browser)


def test_live_details_that_are_left_out(case):
    """Are said to be, not shown as none."""
    with Live(case, lambda second: page([process(1, second, 5, kernels=(), functions=[], streams=[])], second)) as (browser, _):
        browser.evaluate("cuscopeLive.open('1')")
        equal("told", True, "kernels, functions and streams are left out" in browser.evaluate("document.querySelector('#process [role=status]').textContent"))
        equal("tables", ["Memory by kind", "Transfers"], browser.evaluate("[...document.querySelectorAll('#process .table:not([hidden]) h3')].map((head) => head.textContent)"))
        nothing_failed(browser)


@contextlib.contextmanager
def of_top(case, program, *options, **environment):
    """(browser, program) of a page of top that traces a program on the simulated driver."""
    libraries = ":".join(os.path.join(case.build, folder) for folder in ("simcuda/push", "simcuda", "simnvml"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
    with contextlib.ExitStack() as ended:
        def start(*words, **more):
            process = ended.enter_context(subprocess.Popen(words, env=dict(os.environ, LD_LIBRARY_PATH=libraries, **more), stdin=subprocess.PIPE,
                                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            ended.callback(process.kill)
            return process
        traced = start(*program, **environment)
        start(os.path.join(case.build, "cuscope"), "top", "--web=" + url[len("http://"):-1], "-p", str(traced.pid), "--interval", "200ms", *options)
        answers(url)
        browser = ended.enter_context(Browser(case))
        size(browser, 1600, 1000)
        browser.url = url
        browser.send("Page.navigate", url=url)
        yield browser, traced


WHY = "document.getElementById('why')"


def test_live_shows_the_account_of_the_last_seconds(case):
    """What is recorded first, then the account; it is drawn anew where it is another one alone, and without one nothing is shown."""
    with Live(case, three) as (browser, server):
        equal("none", True, browser.evaluate(WHY + ".hidden"))
        server.account = {"state": "recording", "sentence": "the first ten seconds are being recorded"}
        wait(browser, f"!{WHY}.hidden")
        equal("what is to come", "the first ten seconds are being recorded", browser.evaluate(WHY + ".querySelector('[role=status]').textContent"))
        server.account = account()
        wait(browser, f"{WHY}.querySelector('.change.first') !== null")
        equal("change", "Change first: sleep in train.py:40 train > data.py:7 fetch", browser.evaluate(WHY + ".querySelector('.change.first .what').textContent"))
        equal("shares", ["80.0 %", "15.0 %", "5.0 %"], browser.evaluate(f"[...{WHY}.querySelectorAll('.share')].map((its) => its.textContent)"))
        equal("all of the bar", 100, browser.evaluate(f"[...{WHY}.querySelectorAll('.stack span')].reduce((sum, its) => sum + Number(its.style.flexGrow), 0)"))
        equal("leads nowhere", 0, browser.evaluate(WHY + ".querySelectorAll('a').length"))
        browser.evaluate(f"window.bar = {WHY}.querySelector('.stack'); {WHY}.querySelector('details').open = true; 0")
        events = server.events
        wait(browser, f"cuscopeLive.model.total.added > {events + 3}")
        equal("is the same", True, browser.evaluate(f"window.bar === {WHY}.querySelector('.stack')"))
        equal("time passes", True, "until" in browser.evaluate(WHY + ".querySelector('[role=status]').textContent"))
        server.account = account(10, first=None, bound_by="kernels")
        wait(browser, f"{WHY}.textContent.includes('Nothing is to be changed first')")
        equal("words stay open", True, browser.evaluate(WHY + ".querySelector('details').open"))
        server.account = {"state": "failed", "sentence": "no account of the last ten seconds"}
        wait(browser, f"{WHY}.textContent.includes('no account of')")
        equal("nothing older", 0, browser.evaluate(WHY + ".querySelectorAll('.stack, .change').length"))
        nothing_failed(browser)


def test_live_account_that_is_hostile_or_none(case):
    """Text stays text, what cannot be read is counted, and no shape of it breaks the page."""
    odd = account(first=None)
    odd["left_out"] = [HOSTILE, "x" * 5000] * 50
    odd["text"] = HOSTILE
    odd["why"]["gpus"][0].update(process=HOSTILE, account=[{"percent": "x", "cause": HOSTILE, "place": [{"function": HOSTILE, "file": "\u202e"}]}, None, 7])
    odd["why"].update(not_known=[HOSTILE], next=[None, 7, {"cause": HOSTILE, "place": 3}])
    with Live(case, three) as (browser, server):
        for shown in (odd, {"state": "answer"}, {"state": "answer", "why": 7, "left_out": 7, "text": []}, {"state": HOSTILE, "sentence": HOSTILE}, "{", "7"):
            server.account, events = shown, server.events
            wait(browser, f"cuscopeLive.model.total.added > {events + 2}")
            equal("markup", [0, 1], browser.evaluate("[document.images.length, document.scripts.length]"))
            equal("figures", 3, len(names(browser)))
        equal("no mark of direction", False, browser.evaluate("/\\u202e/.test(document.body.textContent)"))
        equal("counted", 2, browser.evaluate("cuscopeLive.model.unreadable"))
        nothing_failed(browser)


def test_live_account_of_top_itself(case):
    """What top --why says of a program that sleeps: cause, place, shares that add up to 100, in the words of why."""
    program = os.path.join(case.build, "planted", "planted")
    if os.geteuid() or not os.path.exists(program):
        raise Skip("it traces: root, make planted-programs")
    with of_top(case, [program, "sleep", "60"], "--why") as (browser, _):
        wait(browser, f"{WHY}?.textContent.includes('being recorded')")
        wait(browser, f"{WHY}.querySelector('.change.first') !== null", 40)
        change = browser.evaluate(WHY + ".querySelector('.change.first .what').textContent")
        equal("change", True, change.startswith("Change first: asleep in ") and "pause_between_steps" in change)
        shares = browser.evaluate(f"[...{WHY}.querySelectorAll('.share')].map((its) => parseFloat(its.textContent))")
        equal("all of it", 100, round(sum(shares), 1))
        equal("words", True, "\nChange first: asleep in " in browser.evaluate(WHY + ".querySelector('pre').textContent"))
        nothing_failed(browser)


def test_live_of_top_itself(case):
    """A program of the simulated driver: the members that the page reads are those that top writes."""
    program, driver = os.path.join(case.build, "programs", "loop"), os.path.join(case.build, "simcuda")
    if os.geteuid() or not os.path.exists(program) or not os.path.exists(driver):
        raise Skip("it traces: root, make test-programs simcuda")
    with of_top(case, [program, "60", "200"], RANK="3", SLURM_JOB_ID="4711") as (browser, loop):
        wait(browser, "window.cuscopeLive?.model.page?.total.calls > 20 && document.querySelectorAll('#processes tbody tr').length === 1")
        equal("who", [["loop #3"], [str(loop.pid)], ["4711"]], [column(browser, name) for name in ("NAME", "PID", "JOB")])
        browser.evaluate(f"cuscopeLive.open('{loop.pid}')")
        equal("kernels", ["tick()"], column(browser, "KERNEL", "#process .table:nth-child(1)"))
        equal("functions", ["cuLaunchKernel", "cuMemAlloc_v2", "cuMemFree_v2"], sorted(column(browser, "FUNCTION", "#process .table:nth-child(2)")))
        equal("streams", ["0 (default)"], column(browser, "STREAM", "#process .table:nth-child(3)"))
        equal("kinds", ["all", "device"], sorted(column(browser, "KIND", "#process .table:nth-child(4)")))
        known = "[...document.querySelectorAll('.figure:not([hidden])')].filter((its) => /–|not known|NaN|undefined/.test(its.textContent)).map((its) => its.textContent)"
        equal("not known", [], browser.evaluate(known))
        equal("GPU", "GPU0 NVIDIA Simulated 0", browser.evaluate("document.querySelector('#gpus h3').textContent"))
        equal("busy", "10 %", browser.evaluate("document.querySelector('#gpus b').textContent"))
        equal("facts", True, "tracing costs" in browser.evaluate("document.querySelector('.facts').textContent"))
        nothing_failed(browser)


def answers(url):
    end = time.monotonic() + 20
    while True:
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_live_pictures(case):
    """Light and dark, narrow and wide: kept by --keep, to be looked at. Nothing is wider than the page."""
    with Live(case, lambda second: page([process(100 + i, second, 900 * i, rank=str(i), gpu_share=0.3) for i in range(8)], second)) as (browser, server):
        server.account = account()
        browser.evaluate("cuscopeLive.open('103')")
        wait(browser, f"!{WHY}.hidden")
        for width, height in ((800, 1000), (1920, 1080), (3840, 2160)):
            for dark in (False, True):
                size(browser, width, height, dark)
                time.sleep(0.4)
                equal(f"wider than {width}", True, browser.evaluate("document.documentElement.scrollWidth") <= width)
                picture(case, browser, f"live_{width}_{'dark' if dark else 'light'}", whole=True)
        nothing_failed(browser)


def test_live_axe_finds_nothing(case):
    def figures(second):
        return page([process(1, second, 5), process(2, second, 9, errors_per_second=1.0), process(3, second, 7, ended=True)], second, missed={"complete": False, "lost": {"late": 3}, "hooks": []})
    with Live(case, figures) as (browser, server):
        server.account = account()
        browser.evaluate("cuscopeLive.open('1')")
        wait(browser, f"!{WHY}.hidden")
        axe_finds(case, browser)


def all_tests():
    return [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
