# SPDX-License-Identifier: MIT
"""Made-up pages in a headless Chromium: they open, answer, and ask for nothing."""

import base64
import contextlib
import http.server
import json
import os
import subprocess
import threading
import time

from browser import Browser
from case import Failure, Skip, equal

HERE = os.path.dirname(os.path.abspath(__file__))
SHIFT = 8  # the bit of a modifier
PANEL = "document.querySelector('.panel').innerText"


def make(case, name, *options):
    """A page and what is true of it."""
    path = case.path(name + ".html")
    subprocess.run(["node", os.path.join(HERE, "make_page.mjs"), case.build, path, *options], check=True)
    with open(case.path(name + ".json"), encoding="utf-8") as truth:
        return path, json.load(truth)


def size(browser, width, height, dark=False):
    if hasattr(browser, "size"):
        browser.size(width, height)
        return
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])


def wait(browser, expression, seconds=15):
    """Until it is true; the value that it has then."""
    end = time.monotonic() + seconds
    while True:
        value = browser.evaluate(expression)
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"never: {expression}")
        time.sleep(0.05)


def opened(case, browser, name, *options):
    """Opens a page that is made; when it has painted and added up."""
    size(browser, 1600, 1000)
    path, truth = make(case, name, *options)
    browser.open(path)
    wait(browser, "document.querySelector('#span p')?.textContent.startsWith('Of the')")
    return truth


def picture(case, browser, name, whole=False):
    data = browser.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
    with open(case.path(name + ".png"), "wb") as file:
        file.write(base64.b64decode(data))


def nothing_failed(browser):
    browser.evaluate("1")  # so that what was told before has come
    equal("failures", [], browser.failures)


def focus_canvas(browser):
    browser.evaluate("document.getElementById('timeline').scrollIntoView(); cuscopePage.timeline.canvas.focus()")


def box(browser, selector):
    """Left, top, width, height."""
    return browser.evaluate(f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
                            "return [b.left, b.top, b.width, b.height] })()")


def drag(browser, from_, to, modifiers=0):
    mouse = {"button": "left", "clickCount": 1, "modifiers": modifiers}
    browser.send("Input.dispatchMouseEvent", type="mousePressed", x=from_[0], y=from_[1], **mouse)
    for part in (0.3, 0.7, 1):
        browser.send("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, x=from_[0] + (to[0] - from_[0]) * part,
                     y=from_[1] + (to[1] - from_[1]) * part, **mouse)
    browser.send("Input.dispatchMouseEvent", type="mouseReleased", x=to[0], y=to[1], **mouse)


def rows_of(browser, title):
    """Cells of the table with that title: as numbers, where they are."""
    return browser.evaluate("[...document.querySelectorAll('.table')].filter((t) => t.querySelector('h3').textContent === " +
                            json.dumps(title) + ").flatMap((t) => [...t.querySelectorAll('tbody tr')].map((r) => "
                            "[...r.cells].map((c) => c.title && !isNaN(c.title) ? Number(c.title) : c.textContent)))")


def test_opens(case):
    """All of its parts are there, nothing became markup, nothing was asked for."""
    with Browser(case) as browser:
        opened(case, browser, "small")
        equal("parts", ["missed", "wrong", "why", "timeline", "span", "reports", "flame"],
              browser.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)"))
        equal("missed", True, "12 events were lost" in browser.evaluate("document.getElementById('missed').innerText"))
        equal("nothing wrong", True, browser.evaluate("document.getElementById('wrong').hidden"))
        equal("first", True, "waiting for a disk in train.py:88 step > data.py:31 collate" in
              browser.evaluate("document.querySelector('.change.first').innerText"))
        equal("markup", [0, 0], browser.evaluate("[document.images.length, document.querySelectorAll('[style*=url], iframe, object').length]"))
        nothing_failed(browser)


def test_hostile_names(case):
    """Of rows, of tables and of the panel: as text, whole in the panel, cut elsewhere, marks of direction escaped."""
    with Browser(case) as browser:
        opened(case, browser, "small")
        for text, shown in (("alert", "</script><img src=x onerror=alert(1)>"), ("right", "right \\u{202e} to left"), ("bell", "bell \\u{7} and \\u{d800} half")):
            browser.evaluate(f"cuscopePage.search.input.value = {json.dumps(text)}; cuscopePage.search.list()")
            equal(text, shown, browser.evaluate("document.querySelector('#names button').textContent"))
        browser.evaluate("cuscopePage.search.input.value = 'xxxxxxxx'; cuscopePage.search.list()")
        equal("cut", 200, browser.evaluate("document.querySelector('#names button').textContent.length"))
        browser.evaluate("cuscopePage.search.choose(cuscopePage.search.names[0].name)")
        wait(browser, "document.querySelectorAll('.panel dd').length > 3")
        equal("whole", 10000, browser.evaluate("Math.max(...[...document.querySelectorAll('.panel dd')].map((d) => d.textContent.length))"))
        equal("images", 0, browser.evaluate("document.images.length"))
        nothing_failed(browser)


def test_search_leads_to_a_slow_launch_and_its_work(case):
    """By keyboard alone: search, its arguments, the arrow to its work, and back."""
    with Browser(case) as browser:
        truth = opened(case, browser, "large", "--rows", "300000", "--streams", "4")["slow"]
        before = browser.evaluate("cuscopePage.timeline.view.length")
        focus_canvas(browser)
        browser.key("/")
        browser.type("launchcoop")
        wait(browser, "!document.getElementById('names').hidden")
        browser.key("Enter")
        text = wait(browser, f"{PANEL}.includes('Its work') && {PANEL}.includes('step train.py:88') && {PANEL}")
        for part in (truth["name"], "777,777 ns", "grid (2, 2, 1), block (256, 1, 1), stream 8", truth["work"]):
            equal(part, True, part in text)
        equal("zoomed", True, browser.evaluate("cuscopePage.timeline.view.length") < before / 2)
        equal("told", True, truth["name"] in browser.evaluate("document.querySelector('canvas').getAttribute('aria-label')"))
        browser.evaluate("document.querySelector('.arrow').focus()")
        browser.key("Enter")
        wait(browser, f"{PANEL}.includes('GPU work') && {PANEL}.includes('The call that asked for it')")
        equal("work", truth["workBegin"], browser.evaluate("cuscopePage.timeline.selected.rows.begin[cuscopePage.timeline.selected.row]"))
        browser.evaluate("document.querySelector('.arrow').click()")
        wait(browser, f"{PANEL}.includes({json.dumps(truth['name'])}) && {PANEL}.includes('Its work')")
        nothing_failed(browser)


def test_a_wait_leads_to_who_ended_it(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        browser.evaluate("cuscopePage.goToName('blocked on a lock', (t) => t.kind === 'state')")
        wait(browser, f"{PANEL}.includes('ended by')")
        browser.evaluate("[...document.querySelectorAll('.panel dd a')].find((b) => b.textContent.includes('loader')).click()")
        wait(browser, "cuscopePage.timeline.selected.track.title.startsWith('loader')")
        nothing_failed(browser)


def test_cause_leads_to_its_place(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        browser.evaluate("document.querySelector('.change.first a').click()")
        equal("cause", "waiting for a disk", wait(browser, "cuscopePage.timeline.selected && cuscopePage.store.label("
              "cuscopePage.timeline.selected.rows.name[cuscopePage.timeline.selected.row])"))
        nothing_failed(browser)


def test_tables_sort_filter_and_copy(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        table = "[...document.querySelectorAll('#reports .table')][0]"
        names = table + ".querySelectorAll('tbody td:last-child')"
        click = table + ".querySelectorAll('th button')[%d].click()"
        for column, first in ((2, "cudaLaunchKernel"), (2, "=cudaMemcpyAsync"), (3, "=cudaMemcpyAsync"), (1, "cudaLaunchKernel")):
            browser.evaluate(click % column)
            equal(f"first by {column}", first, browser.evaluate(names + "[0].textContent"))
        equal("not known is last", 'cuda, "quoted"', browser.evaluate(names + "[2].textContent"))
        equal("order is told", "descending", browser.evaluate(table + ".querySelectorAll('th')[1].getAttribute('aria-sort')"))
        browser.evaluate(f"(() => {{ const i = {table}.querySelector('input'); i.value = 'memcpy'; i.dispatchEvent(new Event('input')) }})()")
        equal("filtered", 1, browser.evaluate(names + ".length"))
        browser.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }")
        browser.evaluate(f"[...{table}.querySelectorAll('button')].find((b) => b.textContent === 'copy as csv').click()")
        equal("csv", "Time,Total Time,Num Calls,Name\r\n30.1,3999999,12,'=cudaMemcpyAsync\r\n", wait(browser, "window.copied"))
        equal("command", "cuscope report 'made up.cuscope' cuda_api_sum", browser.evaluate(table + ".querySelector('code').textContent"))
        nothing_failed(browser)


def test_span_has_the_sums_of_its_rows(case):
    """That are the generator's; also after a drag, whatever it gives."""
    with Browser(case) as browser:
        truth = opened(case, browser, "spans", "--rows", "100000")["span"]
        browser.evaluate(f"(() => {{ const i = document.querySelector('.range'); i.value = '{truth['begin']}ns {truth['end']}ns'; i.dispatchEvent(new Event('change')) }})()")
        wait(browser, "document.querySelector('#span p').textContent.startsWith('Of the span')")
        seen = {row[0]: row for row in rows_of(browser, "Functions")}
        equal("names", sorted(truth["sums"]), sorted(seen))
        for name, of in truth["sums"].items():
            equal(name, [of["within"], of["n"], of["ns"]], [seen[name][1], seen[name][3], seen[name][4]])
        equal("command", True, f"--from {truth['begin']}ns --to {truth['end']}ns" in browser.evaluate("document.querySelector('#span code').textContent"))
        focus_canvas(browser)
        left, top, width, _ = box(browser, "#timeline canvas")
        drag(browser, (left + width * 0.4, top + 80), (left + width * 0.6, top + 90), SHIFT)
        wait(browser, f"document.querySelector('#span p').textContent.startsWith('Of the span') && cuscopePage.timeline.span.begin !== {truth['begin']}")
        begin, end = browser.evaluate("[cuscopePage.timeline.timeAt(%f), cuscopePage.timeline.timeAt(%f)]" % (width * 0.4, width * 0.6))
        seen = browser.evaluate("[cuscopePage.timeline.span.begin, cuscopePage.timeline.span.end]")
        equal("of the span that was drawn", True, all(abs(one - other) < 2 for one, other in zip(seen, (begin, end))))
        browser.key("Escape")
        wait(browser, "document.querySelector('#span p').textContent.startsWith('Of the whole')")
        nothing_failed(browser)


def test_pointer_and_keys_move_the_view(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        focus_canvas(browser)
        length, begin = "cuscopePage.timeline.view.length", "cuscopePage.timeline.view.begin"
        whole = browser.evaluate(length)
        for key in ("w", "+", "w"):
            browser.key(key)
        equal("closer", True, abs(browser.evaluate(length) / whole - 0.343) < 1e-6)
        was = browser.evaluate(begin)
        browser.key("ArrowRight")
        equal("later", True, browser.evaluate(begin) > was)
        left, top, width, height = box(browser, "#timeline canvas")
        was = browser.evaluate(begin)
        drag(browser, (left + 600, top + 200), (left + 500, top + 200))
        equal("dragged", True, browser.evaluate(begin) > was)
        was = browser.evaluate(length)
        browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=left + 600, y=top + 200, deltaX=0, deltaY=-120, modifiers=2)
        wait(browser, f"{length} < {was} * 0.9")
        browser.key("0")
        equal("whole", True, abs(browser.evaluate(length) / whole - 1) < 1e-6)
        browser.key("Enter")
        wait(browser, f"{PANEL}.includes('Range')")
        first = browser.evaluate("cuscopePage.timeline.selected.row")
        browser.key(".")
        wait(browser, f"cuscopePage.timeline.selected.row > {first}")
        browser.key("j")
        wait(browser, "cuscopePage.timeline.selected.track.kind === 'call'")
        browser.key("x")
        wait(browser, "cuscopePage.timeline.span !== null")
        nothing_failed(browser)


def test_click_selects_and_closes_groups(case):
    with Browser(case) as browser:
        truth = opened(case, browser, "small")["slow"]
        focus_canvas(browser)
        left, top, *_ = box(browser, "#timeline canvas")
        x = browser.evaluate(f"cuscopePage.timeline.xOf({truth['begin'] + truth['dur'] / 2})")
        y = browser.evaluate("cuscopePage.timeline.layout.lines.find((line) => line.track?.kind === 'call').y")
        browser.click(left + x, top + 30 + y + 8)
        wait(browser, f"{PANEL}.includes({json.dumps(truth['name'])})")
        lines = browser.evaluate("cuscopePage.timeline.layout.lines.length")
        browser.click(left + 20, top + 30 + 10)
        wait(browser, f"cuscopePage.timeline.layout.lines.length === {lines} - 4")
        nothing_failed(browser)


def test_flame_graph(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        browser.evaluate("document.getElementById('flame').scrollIntoView()")
        wait(browser, "document.querySelector('#flame [role=status]').textContent.startsWith('all: ')")
        browser.evaluate("(() => { const i = document.querySelector('#flame input'); i.value = 'layer_[3]'; i.dispatchEvent(new Event('input')) })()")
        equal("found", True, 5 < float(wait(browser, "/matched: ([0-9.]+) %/.exec(document.querySelector('#flame output').textContent)?.[1]")) < 25)
        equal("marked", True, browser.evaluate("[...document.querySelectorAll('#flame .hit')].every((g) => /layer_3/.test(g.getAttribute('aria-label')))"))
        browser.evaluate("document.querySelector('#flame .graph g').focus()")
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            browser.key(key)
        equal("zoomed", "all > main", browser.evaluate("[...document.querySelectorAll('#flame nav button')].slice(0, 2).map((b) => b.textContent).join(' > ')"))
        equal("whole width", True, browser.evaluate("(() => { const { focused, graph } = cuscopePage.flame.picture; return "
                                                    "Math.abs(focused.rect.getBoundingClientRect().width - graph.width.baseVal.value) <= 4 })()"))
        browser.key("Escape")
        equal("all", 0, browser.evaluate("document.querySelectorAll('#flame nav button').length"))
        for mode in ("blocked", "work"):
            browser.evaluate(f"(() => {{ const s = document.querySelector('#flame select'); s.value = '{mode}'; s.dispatchEvent(new Event('change')) }})()")
            wait(browser, "document.querySelector('#flame [role=status]').textContent.startsWith('all: ')")
            equal(mode, True, browser.evaluate("cuscopePage.flame.root.children.size") > 0)
        nothing_failed(browser)


def test_damaged_cut_and_strange_pages(case):
    """They say what is wrong, and show all else."""
    with Browser(case) as browser:
        opened(case, browser, "damaged", "--damage", "--rows", "100000")
        equal("told", True, "impossible times" in browser.evaluate("document.getElementById('wrong').innerText"))
        browser.evaluate("cuscopePage.setSpan(1000, 20000)")
        browser.evaluate("cuscopePage.flame.make()")
        wait(browser, "document.getElementById('wrong').innerText.includes('cannot be read')")
        wait(browser, "cuscopePage.store.damaged > 1")
        equal("still there", True, len(rows_of(browser, "Functions")) > 0)
        for name, options in (("empty", ["--empty"]), ("one", ["--one"])):
            opened(case, browser, name, *options)
        focus_canvas(browser)
        browser.key("Enter")
        wait(browser, f"{PANEL}.includes('never returned')")
        path, _ = make(case, "small")
        with open(path, encoding="utf-8") as whole, open(case.path("cut.html"), "w", encoding="utf-8") as cut:
            cut.write(whole.read().replace('id="index">{', 'id="index">{{'))
        browser.open(case.path("cut.html"))
        wait(browser, "document.getElementById('wrong')?.innerText.includes('damaged or cut')")
        nothing_failed(browser)


@contextlib.contextmanager
def served(path, kind):
    """Its address, as whoever serves it calls it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            with open(path, "rb") as file:
                self.wfile.write(file.read() if self.path == "/page" else b"")

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page"
        server.shutdown()


SUMS = "[...document.querySelectorAll('#span tbody tr')].map((row) => row.textContent).join()"


def test_large_page_is_the_same_in_words(case):
    """In UTF-16, also where a server calls it UTF-8; what it may be at most keeps it in base64."""
    trace, paths, sums = case.path("large.cuscope"), {}, {}
    subprocess.run([os.path.join(case.build, "bench", "training"), trace, "2000000"], check=True, stdout=subprocess.DEVNULL)
    for name, options in (("words", []), ("base64", ["--max-size", "14M"])):
        paths[name] = case.path(f"large_{name}.html")
        equal(name, 0, case.cuscope("export", "--force", trace, "-o", paths[name], *options).returncode)
    with open(paths["words"], "rb") as words, open(paths["base64"], "rb") as base:
        equal("begins", [b"\xff\xfe<\0", b"<!DO"], [words.read(4), base.read(4)])
    equal("smaller", True, os.path.getsize(paths["words"]) < 0.9 * os.path.getsize(paths["base64"]))
    with Browser(case) as browser:
        size(browser, 1600, 1000)
        for name in paths:
            browser.open(paths[name])
            wait(browser, "document.querySelector('#span p')?.textContent.startsWith('Of the')")
            browser.evaluate("cuscopePage.setSpan(1e9, 1.1e9)")
            wait(browser, "document.querySelector('#span p').textContent.includes('100 ms')")
            sums[name] = browser.evaluate(SUMS)
            equal(f"damaged in {name}", 0, browser.evaluate("cuscopePage.store.damaged"))
            equal(f"decoded in {name}", True, browser.evaluate("cuscopePage.store.decoded.size > 0"))
        equal("sums", sums["base64"], sums["words"])
        nothing_failed(browser)
        if hasattr(browser, "send"):
            with served(paths["words"], "text/html; charset=utf-8") as address:
                browser.url = address
                browser.send("Page.navigate", url=address)
                wait(browser, "document.characterSet === 'UTF-16LE' && document.querySelector('#span p')?.textContent.startsWith('Of the')")
                equal("damaged as served", 0, browser.evaluate("cuscopePage.store.damaged"))


def test_many_streams(case):
    """8 GPUs with 64 streams each: what is drawn is what is in view."""
    with Browser(case) as browser:
        opened(case, browser, "wide", "--gpus", "8", "--streams", "64", "--rows", "100000")
        equal("tracks", True, browser.evaluate("cuscopePage.store.tracks.length") > 8 * 64)
        focus_canvas(browser)
        browser.evaluate("cuscopePage.timeline.scroller.scrollTop = 4000")
        wait(browser, "cuscopePage.timeline.layout.within(cuscopePage.timeline.scroller.scrollTop, 600)[0].y > 3900")
        equal("few at once", True, browser.evaluate("cuscopePage.timeline.layout.within(4000, 600).length") < 60)
        nothing_failed(browser)


def test_pictures(case):
    """Light and dark, narrow and wide: kept by --keep, to be looked at. Nothing is wider than the page."""
    with Browser(case) as browser:
        opened(case, browser, "large", "--rows", "300000", "--streams", "4")
        for width, height in ((800, 1000), (1920, 1080), (3840, 2160)):
            for dark in (False, True):
                size(browser, width, height, dark)
                time.sleep(0.4)
                equal(f"wider than {width}", True, browser.evaluate("document.documentElement.scrollWidth") <= width)
                picture(case, browser, f"page_{width}_{'dark' if dark else 'light'}")
        size(browser, 1920, 1080)
        browser.evaluate("cuscopePage.search.input.value = 'launchcoop'; cuscopePage.search.list(); cuscopePage.search.choose(cuscopePage.search.names[0].name)")
        wait(browser, f"{PANEL}.includes('Its work')")
        focus_canvas(browser)
        time.sleep(0.5)
        picture(case, browser, "page_selected")
        browser.evaluate("document.getElementById('flame').scrollIntoView()")
        wait(browser, "document.querySelector('#flame [role=status]').textContent.startsWith('all: ')")
        picture(case, browser, "page_flame")
        nothing_failed(browser)


def exported(case, browser, trace):
    """Opens the page that cuscope itself writes of a golden trace; its path."""
    size(browser, 1600, 1000)
    browser.open(case.export(trace, trace + ".html", "--force"))
    wait(browser, "document.querySelector('#span p')?.textContent.startsWith('Of the')")
    return case.trace(trace)


def report_sums(case, trace, *options):
    """Calls and total time of each function, by the command."""
    result = case.cuscope("report", trace, "cuda_api_sum", "--format", "json", *options)
    return {row["Name"]: (row["Num Calls"], row["Total Time (ns)"]) for row in first_rows(json.loads(result.stdout))}


def first_rows(value):
    """The first list of objects with names, wherever it is."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "Name" in value[0]:
        return value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        found = first_rows(inner)
        if found:
            return found
    return None


def test_exported_page_has_the_sums_of_the_report(case):
    """Of the whole recording, and of a span as report --from --to."""
    with Browser(case) as browser:
        for trace in ("gpu", "ranks"):
            path = exported(case, browser, trace)
            end = browser.evaluate("cuscopePage.store.end")
            for begin, to in ((None, None), (end * 2 // 10, end * 9 // 10), (end * 45 // 100, end * 92 // 100)):
                options = ()
                if to:
                    options = ("--from", f"{begin}ns", "--to", f"{to}ns")
                    browser.evaluate(f"cuscopePage.setSpan({begin}, {to})")
                    wait(browser, f"document.querySelector('#span p').textContent.includes('{to / 1e9:.9f} s')")
                seen = {row[0]: (row[3], row[4]) for row in rows_of(browser, "Functions") if row[3]}
                equal(f"{trace} {options}", report_sums(case, path, *options), seen)
            nothing_failed(browser)


def test_exported_page_of_waits(case):
    """Its account leads into the timeline; its reports are there."""
    with Browser(case) as browser:
        exported(case, browser, "host_waits")
        browser.evaluate("document.querySelector('.change.first a').click()")
        equal("cause", "waiting for a disk", wait(browser, "cuscopePage.timeline.selected && cuscopePage.store.label("
              "cuscopePage.timeline.selected.rows.name[cuscopePage.timeline.selected.row])"))
        equal("definition", "A thread waits for a disk. Shows its longest occurrence in the timeline.", browser.evaluate("document.querySelector('.change.first a').dataset.about"))
        browser.evaluate("document.querySelector('.change.first a').focus()")
        equal("definition is shown", False, browser.evaluate("document.getElementById('tip').hidden"))
        equal("reports", True, browser.evaluate("document.querySelector('#reports select').options.length") > 10)
        for report in range(browser.evaluate("document.querySelector('#reports select').options.length")):
            browser.evaluate("(() => { const s = document.querySelector('#reports select'); s.selectedIndex = %d; s.dispatchEvent(new Event('change')) })()" % report)
        nothing_failed(browser)


def test_memory_that_is_held_is_drawn_to_the_end(case):
    """Of the recording, or of its process."""
    ends = """cuscopePage.store.tracks.filter((track) => track.title === 'live memory, device')
        .map((track) => track.blocks[track.blocks.length - 1].end)"""
    with Browser(case) as browser:
        exported(case, browser, "plain")
        equal("one that exits after 8 ms, one that stays", [8000000, browser.evaluate("cuscopePage.store.end")], browser.evaluate(ends))
        nothing_failed(browser)


def test_tables_of_memory_fit_a_small_screen(case):
    """Short words take no more room than they need, and units stand with the values alone."""
    with Browser(case) as browser:
        exported(case, browser, "plain")
        size(browser, 1280, 900)
        browser.evaluate("""(() => { const s = document.querySelector('#reports select');
            s.selectedIndex = [...s.options].findIndex((o) => o.textContent.startsWith('memory:')); s.dispatchEvent(new Event('change')) })()""")
        tables = "[...document.querySelectorAll('#reports .table')]"
        titles = browser.evaluate(tables + ".map((table) => table.querySelector('h3').textContent)")
        equal("tables", ["By the function that allocated", "Biggest that were never freed"], titles[1:])
        equal("tables that are wider than their place", [], browser.evaluate(tables + """.map((table) => table.querySelector('.rows'))
            .filter((rows) => rows.scrollWidth > rows.clientWidth).map((rows) => rows.getAttribute('aria-label'))"""))
        equal("columns", ["Size", "Kind", "Address", "Made At", "PID", "TID", "Stayed", "Function"],
              browser.evaluate(f"[...{tables}.at(-1).querySelectorAll('th')].map((th) => th.textContent)"))
        equal("what it is, beside the title", 0, browser.evaluate("document.querySelectorAll('#reports .help').length"))
        nothing_failed(browser)


def axe_finds(case, browser):
    """Nothing, light and dark."""
    axe = os.path.join(case.build, "page-checkers", "node_modules", "axe-core", "axe.min.js")
    if not os.path.exists(axe):
        raise Skip("no axe-core: make page-checkers")
    with open(axe, encoding="utf-8") as script:
        source = script.read()
    for dark in (False, True):
        size(browser, 1600, 1000, dark)
        browser.evaluate(source + ";axe.run(document, {resultTypes: ['violations']}).then((r) => window.found = r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 150)).join(' | '))).catch((e) => window.found = [String(e)])")
        found = json.loads(wait(browser, "window.found && JSON.stringify(window.found)", 60))
        browser.evaluate("window.found = null")
        equal("dark" if dark else "light", [], found)


def test_axe_finds_nothing(case):
    with Browser(case) as browser:
        opened(case, browser, "small")
        axe_finds(case, browser)


def all_tests():
    return [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
