# SPDX-License-Identifier: MIT
"""Pages of two recordings, as cuscope writes them, in a headless Chromium."""

import json
import time

from browser import Browser
from browser_tests import axe_finds, box, drag, nothing_failed, picture, rows_of, size, wait
from case import equal

ALT = 1  # the bit of a modifier
A, B = "cuscopePage.a", "cuscopePage.b"


def opened(case, browser, a, b, *options):
    size(browser, 1600, 1000)
    path = case.path("both.html")
    equal("status", 0, case.cuscope("export", case.trace(a), case.trace(b), "-o", path, "--force", *options).returncode)
    browser.open(path)
    wait(browser, f"[{A}, {B}].every((its) => its.sums.status.textContent.startsWith('Of the'))")


def views(browser):
    """Begin and length of either, and how far B is moved."""
    return browser.evaluate(f"[{A}, {B}].map((its) => [its.timeline.view.begin, its.timeline.view.length]).concat([[cuscopePage.shift]])")


def near(what, one, other, slack=1):
    equal(what, True, abs(one - other) <= slack)


def test_pair_opens(case):
    """What differs, above the timelines of both, above tables: of the difference, and of either."""
    with Browser(case) as browser:
        opened(case, browser, "host_line", "host_waits")
        equal("parts", ["missedA", "wrongA", "missedB", "wrongB", "changes", "timeline", "tables"],
              browser.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)"))
        equal("nothing wrong", [True] * 4, browser.evaluate("[...document.querySelectorAll('main > .box')].map((s) => s.hidden)"))
        equal("words", True, browser.evaluate("document.querySelector('.verdict').textContent").startswith("a step takes as long (10.000 ms to 10.000 ms): -6.141 ms"))
        equal("bars", ["A: 10 ms", "B: 10 ms"], browser.evaluate("[...document.querySelectorAll('.pair-bars > span')].map((s) => s.textContent)"))
        equal("a row", ["0 ns", "-6.959 ms", "computing"], browser.evaluate("[1, 2, 4].map((i) => document.querySelector('#changes tbody tr + tr').cells[i].textContent)"))
        equal("names", [case.trace("host_line"), case.trace("host_waits")], browser.evaluate("[...document.querySelectorAll('.side h3')].map((h) => h.textContent.slice(3))"))
        equal("one below the other", True, sum(box(browser, ".side")[1::2]) <= box(browser, ".side + .side")[1])
        titles = "[...document.querySelectorAll('#tables h3, #tables h2')].map((h) => h.textContent)"
        equal("difference", True, "totals: what was done in all" in browser.evaluate(titles))
        equal("units", True, "404 ms" in browser.evaluate("document.querySelector('#tables .table tbody tr').innerText"))
        for i, first in ((1, "computing in train.py:88"), (2, "waiting for a disk in train.py:88")):
            browser.evaluate(f"document.querySelectorAll('#tables > .bar button')[{i}].click()")
            equal(f"tables of {i}", ["Where the time goes", "Sums", "Reports", "Flame graph"], browser.evaluate("[...document.querySelectorAll('.sides h2')].map((h) => h.textContent)"))
            equal(f"first of {i}", True, first in browser.evaluate("document.querySelector('.change.first').innerText"))
            equal(f"pressed {i}", [str(k == i).lower() for k in range(3)], browser.evaluate("[...document.querySelectorAll('#tables > .bar button')].map((b) => b.ariaPressed)"))
        equal("markup", [0, 0], browser.evaluate("[document.images.length, document.querySelectorAll('[style*=url], iframe, object').length]"))
        nothing_failed(browser)


def test_pair_tables_sort_filter_and_copy(case):
    with Browser(case) as browser:
        opened(case, browser, "plain", "gpu")
        title = "cuda_api_sum: CUDA calls by total time"
        table = f"[...document.querySelectorAll('#tables .table')].find((t) => t.querySelector('h3').textContent === {json.dumps(title)})"
        browser.evaluate(f"(() => {{ const i = {table}.querySelector('input'); i.value = 'cuMemcpyHtoD_v2'; i.dispatchEvent(new Event('input')) }})()")
        rows = json.loads(case.cuscope("diff", case.trace("plain"), case.trace("gpu"), "cuda_api_sum", "--format", "json").stdout)
        wanted = [row for row in rows if row["Name"] == "cuMemcpyHtoD_v2"]
        equal("filtered", [row["Total B (ns)"] for row in wanted], [row[1] for row in rows_of(browser, title)])
        browser.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }")
        browser.evaluate(f"[...{table}.querySelectorAll('button')].find((b) => b.textContent === 'copy as csv').click()")
        equal("csv", ",".join(rows[0]), wait(browser, "window.copied").splitlines()[0])
        equal("command", f"cuscope diff {case.trace('plain')} {case.trace('gpu')} cuda_api_sum", browser.evaluate(table + ".querySelector('code').textContent"))
        browser.evaluate(f"(() => {{ const i = {table}.querySelector('input'); i.value = ''; i.dispatchEvent(new Event('input')) }})()")
        browser.evaluate(table + ".querySelectorAll('th button')[5].click()")
        equal("sorted", sorted((row["Count B"] or 0 for row in rows), reverse=True)[0], rows_of(browser, title)[0][5])
        nothing_failed(browser)


def test_pair_moves_as_one(case):
    """By pointer and keys in either; aligned at the first steps, and at the begins."""
    with Browser(case) as browser:
        opened(case, browser, "host_line", "gpu")
        equal("without steps", True, browser.evaluate("cuscopePage.aligned[1].disabled"))
        opened(case, browser, "host_line", "host_waits", "--from", "1ms")
        browser.evaluate("document.getElementById('timeline').scrollIntoView()")
        for side, other in ((A, B), (B, A)):
            browser.evaluate(f"{side}.timeline.canvas.focus()")
            before = views(browser)
            browser.key("w")
            browser.key("ArrowRight")
            after = views(browser)
            near("closer", after[0][1], before[0][1] * 0.7)
            near("as long", after[0][1], after[1][1])
            near("as before", after[1][0] - after[0][0], before[1][0] - before[0][0])
            equal("moved", True, browser.evaluate(f"{other}.timeline.view.begin") != before[0][0])
        left, top, width, _ = box(browser, ".side + .side canvas")
        before = views(browser)
        drag(browser, (left + 600, top + 100), (left + 500, top + 100))
        equal("dragged", True, views(browser)[0][0] > before[0][0])
        browser.key("0")
        near("all of both", views(browser)[0][1], browser.evaluate(f"Math.max({A}.store.end, {B}.store.end)") * 1.01, 1e6)
        equal("of one width", box(browser, ".side canvas")[2], width)
        nothing_failed(browser)


def test_pair_can_be_moved_against_each_other(case):
    """By the handle, by its keys, by Alt and a drag, by [ and ]; and back."""
    with Browser(case) as browser:
        opened(case, browser, "host_line", "gpu")
        browser.evaluate("document.getElementById('timeline').scrollIntoView()")
        equal("at first", 0, browser.evaluate("cuscopePage.shift"))
        each = browser.evaluate(f"{B}.timeline.view.length / {B}.timeline.lanesWidth")
        left, top, width, height = box(browser, ".handle")
        drag(browser, (left + width / 2, top + height / 2), (left + width / 2 + 50, top + height / 2))
        near("dragged", browser.evaluate("cuscopePage.shift"), -50 * each)
        equal("told", "B is moved by " + browser.evaluate("document.querySelector('.handle').ariaValueText").split("by ")[1],
              browser.evaluate("document.querySelector('.shift .count').textContent"))
        equal("not aligned", ["false", "false"], browser.evaluate("cuscopePage.aligned.map((b) => b.ariaPressed)"))
        browser.evaluate("document.querySelector('.handle').focus()")
        browser.key("ArrowLeft")
        near("by key", browser.evaluate("cuscopePage.shift"), -46 * each)
        browser.evaluate(f"{B}.timeline.canvas.focus()")
        browser.key("]")
        near("by ]", browser.evaluate("cuscopePage.shift"), -50 * each)
        a = browser.evaluate(f"{A}.timeline.view.begin")
        left, top, *_ = box(browser, ".side + .side canvas")
        drag(browser, (left + 500, top + 60), (left + 550, top + 60), ALT)
        near("alone", browser.evaluate("cuscopePage.shift"), -100 * each)
        equal("A stays", a, browser.evaluate(f"{A}.timeline.view.begin"))
        browser.evaluate("document.querySelector('.shift button').click()")
        equal("back", 0, browser.evaluate("cuscopePage.shift"))
        nothing_failed(browser)


def test_pair_aligns_at_first_steps(case):
    """What begins with them is one below the other."""
    with Browser(case) as browser:
        opened(case, browser, "host_line", "host_waits")
        first = browser.evaluate("cuscopePage.differs.first_steps_ns")
        equal("at one place", [browser.evaluate(f"{A}.timeline.xOf({first[0]})")], [browser.evaluate(f"{B}.timeline.xOf({first[1]})")])
        equal("aligned", "true", browser.evaluate("cuscopePage.aligned[1].ariaPressed"))
        nothing_failed(browser)


def test_pair_shows_durations_of_both(case):
    """Of a name that both have, and of one that the other has not; a search marks it in both."""
    with Browser(case) as browser:
        opened(case, browser, "gpu", "host_line")
        panel = "document.querySelector('.side .panel').innerText"
        both, alone = browser.evaluate(f"(() => {{ const its = (page) => [...new Set(page.store.tracks.filter((t) => t.kind === 'call').flatMap((t) => t.blocks.flatMap((b) => b.sums.filter((s) => s[1] > 1).map((s) => page.store.names[s[0]]))))];"
                                       f"const a = its({A}); return [a.find((name) => its({B}).includes(name)), a.find((name) => !{B}.store.names.includes(name))] }})()")
        for name, other in ((both, None), (alone, "B: none")):
            if not name:
                continue
            browser.evaluate(f"{A}.goToName({json.dumps(name)}, (t) => t.kind === 'call')")
            text = wait(browser, f"{panel}.includes('Durations of this name') && {panel}.startsWith({json.dumps(name)}) && {panel}")
            n = [browser.evaluate(f"{side}.store.tracks.filter((t) => t.kind === 'call').flatMap((t) => t.blocks.flatMap((b) => b.sums)).filter((s) => {side}.store.names[s[0]] === {json.dumps(name)}).reduce((n, s) => n + s[1], 0)") for side in (A, B)]
            equal(f"{name} in A", True, f"A: {n[0]}" in text)
            equal(f"{name} in B", True, (other or f"B: {n[1]}") in text)
            equal("of one scale", 1, browser.evaluate("new Set([...document.querySelectorAll('.side .ends')].map((e) => e.textContent)).size"))
        equal("both were there", True, bool(both and alone))
        browser.evaluate(f"{A}.search.input.value = {json.dumps(both)}; {A}.search.list(); {A}.search.choose({A}.store.names.indexOf({json.dumps(both)}))")
        wait(browser, f"{A}.timeline.found >= 0 && {B}.store.names[{B}.timeline.found] === {json.dumps(both)}")
        browser.evaluate(f"{B}.timeline.canvas.focus()")
        browser.key("/")
        equal("search of B", True, browser.evaluate(f"document.activeElement === {B}.search.input"))
        nothing_failed(browser)


def test_pair_has_sums_of_one_span_of_both(case):
    """As reports of each have them, at the times that are beside each other."""
    with Browser(case) as browser:
        opened(case, browser, "gpu", "ranks")
        browser.evaluate("cuscopePage.align(1e6)")
        browser.evaluate("(() => { const i = document.querySelector('.range'); i.value = '2ms 30ms'; i.dispatchEvent(new Event('change')) })()")
        wait(browser, f"[{A}, {B}].every((its) => its.sums.status.textContent.startsWith('Of the span'))")
        for i, (trace, side, begin, end) in enumerate((("gpu", A, 2, 30), ("ranks", B, 3, 31))):
            equal(f"span of {trace}", [begin * 10**6, end * 10**6], browser.evaluate(f"[{side}.timeline.span.begin, {side}.timeline.span.end]"))
            browser.evaluate(f"cuscopePage.choose({i + 1})")
            rows = json.loads(case.cuscope("report", case.trace(trace), "cuda_api_sum", "--format", "json", "--from", f"{begin}ms", "--to", f"{end}ms").stdout)
            equal(trace, {row["Name"]: row["Total Time (ns)"] for row in rows}, {row[0]: row[4] for row in rows_of(browser, "Functions") if row[3]})
        nothing_failed(browser)


def test_pair_of_strange_files(case):
    """Without GPU, empty, with names that are markup; cut in the middle, damaged: told, and the rest is shown."""
    with Browser(case) as browser:
        for a, b in (("host_no_gpu", "gpu"), ("host_empty", "plain"), ("edges", "events"), ("hard stacks", "hard stacks")):
            opened(case, browser, a, b)
            equal("a sentence", True, len(browser.evaluate("document.querySelector('.verdict').textContent")) > 20)
            for i in (1, 2):
                browser.evaluate(f"cuscopePage.choose({i})")
                for report in range(browser.evaluate("document.querySelector('#reports select')?.options.length ?? 0")):
                    browser.evaluate(f"(() => {{ const s = document.querySelector('#reports select'); s.selectedIndex = {report}; s.dispatchEvent(new Event('change')) }})()")
            for side in (A, B):
                browser.evaluate(f"{side}.timeline.canvas.focus()")
                browser.key("Enter")
            time.sleep(0.3)
            equal("images", 0, browser.evaluate("document.images.length"))
            nothing_failed(browser)
        with open(case.path("both.html"), encoding="utf-8") as file:
            text = file.read()
        for what, bad in (("index-other", text[:text.index('id="index-other"') + 3000]), ("pair", text.replace('id="pair">{', 'id="pair">{{')), ("index", text.replace('id="index">{', 'id="index">{{'))):
            with open(case.path("bad.html"), "w", encoding="utf-8") as file:
                file.write(bad if bad.endswith("</html>\n") else bad + "\n</script><script>" + text.split("</script>\n<script>")[1].split("</script>")[0] + "</script>")
            browser.open(case.path("bad.html"))
            wait(browser, "/damaged or cut/.test(document.querySelector('main')?.innerText)")
            equal(f"the rest of {what}", True, browser.evaluate(f"{'cuscopePage.b' if what == 'index' else A}.store.tracks.length > 0"))
        nothing_failed(browser)


def test_pair_pictures(case):
    """Kept by --keep, to be looked at. Nothing is wider than the page."""
    with Browser(case) as browser:
        opened(case, browser, "host_line", "host_waits")
        browser.evaluate(f"{B}.goToName('cudaLaunchKernel', (t) => t.kind === 'call')")
        wait(browser, "document.querySelector('.side + .side .panel').innerText.includes('Durations')")
        for width, height in ((800, 1000), (1920, 1080)):
            for dark in (False, True):
                size(browser, width, height, dark)
                time.sleep(0.4)
                equal(f"wider than {width}", True, browser.evaluate("document.documentElement.scrollWidth") <= width)
                picture(case, browser, f"pair_{width}_{'dark' if dark else 'light'}", True)
        nothing_failed(browser)


def test_axe_finds_nothing_in_pairs(case):
    with Browser(case) as browser:
        opened(case, browser, "host_line", "host_waits")
        browser.evaluate(f"{B}.goToName('cudaLaunchKernel', (t) => t.kind === 'call')")
        for number in (0, 1, 2):
            browser.evaluate(f"cuscopePage.choose({number})")
            axe_finds(case, browser)


def all_tests():
    return [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
