# SPDX-License-Identifier: MIT
"""Flame graphs in a browser: zoom, search, keys, and names that try to break out."""

import os
import re
import subprocess
import xml.etree.ElementTree

from browser import CONTROL, Browser
from case import Failure, equal

SVG = "{http://www.w3.org/2000/svg}"

# Names and places of the boxes that are shown, as a person sees them.
SHOWN = """[...document.querySelectorAll('.graph g')].filter(g => !g.classList.contains('off')).map(
    g => { const box = g.querySelector('rect').getBoundingClientRect();
           return [g.flameFrame.name, Math.round(box.x), Math.round(box.width), Math.round(box.y + 9)]; })"""


def profile(case, name, file):
    path = case.path(file)
    subprocess.run([os.path.join(case.build, "tests", "export", "profiles"), name, path], check=True)
    return path


def shown(browser):
    return {name: (x, width, y) for name, x, width, y in browser.evaluate(SHOWN)}


def widths(browser):
    return {name.split("(")[0].strip(): place[1] for name, place in shown(browser).items()}


def click(browser, name):
    x, width, y = shown(browser)[name]
    browser.click(x + width // 2, y)


def focused(browser):
    return browser.evaluate("document.activeElement.flameFrame && document.activeElement.flameFrame.name")


def found(browser):
    return browser.evaluate("document.querySelector('output').textContent")


def no_failures(browser):
    equal("failures in the browser", [], browser.failures)


def test_flame_is_well_formed_and_needs_nothing_else(case):
    for name in ("plain", "large", "hostile", "empty"):
        path = profile(case, name, name + ".svg")
        root = xml.etree.ElementTree.parse(path).getroot()
        equal("root", SVG + "svg", root.tag)
        equal("scripts", 1, sum(1 for element in root.iter() if element.tag == SVG + "script"))
        with open(path) as file:
            outside = re.sub(r"<script><!\[CDATA\[.*?\]\]></script>", "", file.read(), flags=re.S)
        equal("links", [], re.findall(r"<[^>]*(?:href|src)=[^>]*>|url\(|@import", outside))


def test_flame_without_its_script_is_a_picture(case):
    root = xml.etree.ElementTree.parse(profile(case, "plain", "plain.svg")).getroot()
    graph = [element for element in root.iter(SVG + "svg") if element.get("class") == "graph"][0]
    texts = [group.findtext(SVG + "text") for group in graph]
    equal("texts", ["all", "train (train.py:88)", "Net.forward (model.py:12)"], texts[:3])
    titles = [group.findtext(SVG + "title").split("\n") for group in graph]
    equal("a frame", ["Net.forward (model.py:12)", "/app/model.py:12",
                      "181.000 ms, 90.5 % (CPU 85.000 ms, off CPU 40.000 ms, GPU 56.000 ms)",
                      "itself 40.000 ms, 20.0 %"], titles[2])
    lines = " ".join(element.text for element in root.iter(SVG + "text") if element.get("class") == "note")
    for wanted in ("1 process, 200.000 ms at 99 samples a second, on gpu1",
                   "77.8 % of 9 stacks whole; 11.1 % end in a file without unwind tables (mostly libcuda.so.1)"):
        if wanted not in lines:
            raise Failure(f"{wanted!r} is not in {lines!r}")
    legend = [element.text for element in root.iter(SVG + "text") if element.get("class") == "legend"]
    equal("legend", ["Python 20.0 %", "native 10.0 %", "JIT 2.5 %", "CUDA 5.0 %", "driver 12.5 %",
                     "kernel mode 0.0 %", "GPU 30.0 %", "off CPU 20.0 %", "not known 0.0 %"], legend)


def test_flame_says_which_frames_are_left_out(case):
    with open(profile(case, "large", "large.svg")) as file:
        text = file.read()
    left_out = re.search(r"(\d+) frames narrower than 0\.1 % are left out", text)
    if not left_out:
        raise Failure("it does not say what is left out")
    narrowest = min(float(width) for width in re.findall(r'width="([\d.]+)%" height="18"', text))
    if not 0.1 <= narrowest < 0.2:
        raise Failure(f"the narrowest frame has {narrowest} %")


WORDS = "[...document.querySelectorAll('svg.flame > text, .head div, .head span')].map(e => e.getBoundingClientRect())"


def test_flame_words_above_fit_a_narrow_window(case):
    for name in ("plain.svg", "plain.html"):
        with Browser(case, width=600) as browser:
            browser.open(profile(case, "plain", name))
            right, bottom = (browser.evaluate(f"Math.max(...{WORDS}.map(box => box.{side}))") for side in ("right", "bottom"))
            equal(f"{name}: words beyond the window", True, 0 < right <= 600)
            graph = "document.querySelector('.graph g rect').getBoundingClientRect()"
            equal(f"{name}: words over the graph", True, bottom <= browser.evaluate(graph + ".top"))
            equal(f"{name}: graph beyond the picture", True, browser.evaluate(
                "document.querySelector('svg.flame').getBoundingClientRect().bottom >= "
                "Math.max(...[...document.querySelectorAll('.graph g')].map(g => g.getBoundingClientRect().bottom))"))
            no_failures(browser)


def test_flame_names_in_brackets_are_cut_at_their_end(case):
    """[woken by an interrupt] is no name whose last part tells it."""
    for name in ("before", "after"):
        with open(case.path(name + ".folded"), "w") as file:
            file.write("main;[woken by an interrupt];[off_CPU] 100\nmain;work 400\n")
    path = case.path("woken.svg")
    result = case.cuscope("profile", "--diff", case.path("before.folded"), case.path("after.folded"), "-o", path)
    equal("status", 0, result.returncode)
    with Browser(case, width=600) as browser:
        browser.open(path)
        shown = browser.evaluate("[...document.querySelectorAll('.graph g text')].map(text => text.textContent)")
        equal(f"one of {shown}", True, any(text.startswith("[woken by a") and text.endswith("\u2026") for text in shown))


def test_flame_zooms_to_what_is_clicked_and_back(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.svg"))
        before = widths(browser)
        equal("all", 1180, before["all"])
        click(browser, "check")
        zoomed = widths(browser)
        equal("shown", {"all": 1180, "train": 1180, "Net.forward": 1180,
                        "at::addmm": 1180, "check": 1180}, zoomed)
        path = browser.evaluate("document.querySelector('nav').textContent")
        equal("path", "all \u203a \u2026 \u203a Net.forward (model.py:12) \u203a "
                      "at::addmm(at::Tensor const&, at::Tensor const&) \u203a check", path)
        click(browser, "train (train.py:88)")  # a frame above
        equal("train", 1180, widths(browser)["train"])
        equal("check", round(1180 * 20 / 181), widths(browser)["check"])
        browser.evaluate("document.querySelector('nav button').click()")
        equal("after", before, widths(browser))
        no_failures(browser)


def test_flame_finds_by_regular_expression(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.svg"))
        browser.key("f", CONTROL)
        browser.type("^(cuda|.GPU_)")  # the kernel and the copy lie in cudaLaunchKernel
        equal("found", "matched: 62.5 %", found(browser))
        hits = browser.evaluate("[...document.querySelectorAll('.hit')].map(g => g.flameFrame.name)")
        equal("hits", 4, len(hits))
        browser.key("Enter")
        equal("the next", "cudaLaunchKernel", focused(browser))
        browser.key("/")
        browser.evaluate("document.activeElement.select()")
        browser.type("(")
        equal("found", "no regular expression", found(browser))
        browser.evaluate("document.activeElement.select()")
        browser.type("nowhere")
        equal("found", "no match", found(browser))
        browser.key("Escape")
        equal("found", "", found(browser))
        equal("hits", 0, browser.evaluate("document.querySelectorAll('.hit, .dim').length"))
        no_failures(browser)


def test_flame_is_walked_by_keys(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.svg"))
        browser.key("Tab")
        for _ in range(3):
            if focused(browser):
                break
            browser.key("Tab")
        equal("first", "all", focused(browser))
        for key, wanted in (("ArrowDown", "train (train.py:88)"), ("ArrowRight", "[libcuda.so.1]"),
                            ("ArrowRight", "Builtin:ArrayMap"), ("ArrowLeft", "[libcuda.so.1]"),
                            ("ArrowUp", "all"), ("ArrowDown", "train (train.py:88)")):
            browser.key(key)
            equal(key, wanted, focused(browser))
        browser.key("Enter")
        equal("zoomed", 1180, widths(browser)["train"])
        equal("tooltip hidden", True, browser.evaluate("document.querySelector('.tip').parentNode.classList.contains('off')"))
        browser.key("Escape")
        equal("back", round(1180 * 181 / 200), widths(browser)["train"])
        no_failures(browser)


def test_flame_tells_what_is_pointed_at(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.svg"))
        x, width, y = shown(browser)["Net.forward (model.py:12)"]
        browser.move(x + width // 2, y)
        text = browser.evaluate("document.querySelector('.tip').textContent")
        equal("tooltip", "Net.forward (model.py:12)/app/model.py:12\n181.000 ms, 90.5 % (CPU 85.000 ms, "
                         "off CPU 40.000 ms, GPU 56.000 ms)\nitself 40.000 ms, 20.0 %", text)
        place = browser.evaluate("(() => { const b = document.querySelector('.tip').getBoundingClientRect(); "
                                 "return b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight; })()")
        equal("inside of the window", True, place)
        no_failures(browser)


def test_flame_of_hostile_names_runs_nothing(case):
    with Browser(case) as browser:
        browser.open(profile(case, "hostile", "hostile.svg"))
        names = [name for name in shown(browser)]
        for wanted in ("</script><script>document.title='broken'</script>", "__proto__",
                       "a;b\\x0ac\\x0d\\x0a 5\\x0a\\x1b[31m\\x07"):
            equal(wanted, True, wanted in names)
        browser.key("f", CONTROL)
        browser.type("script|proto|img")
        browser.key("Escape")
        for name in names:
            if "img" in name or "script" in name:
                click(browser, name)
                browser.key("Escape")
        equal("title", -1, browser.evaluate("document.title.indexOf('broken')"))
        equal("scripts and images", [1, 0], browser.evaluate(
            "[document.querySelectorAll('script').length, document.querySelectorAll('img, image').length]"))
        no_failures(browser)


def test_flame_of_ten_thousand_levels_and_of_none(case):
    with Browser(case) as browser:
        browser.open(profile(case, "deep", "deep.svg"))
        equal("boxes", 10001, browser.evaluate("document.querySelectorAll('.graph g').length"))
        browser.evaluate("document.querySelectorAll('.graph g')[9000].dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        equal("path", True, browser.evaluate("document.querySelector('nav').textContent.endsWith('f8999')"))
        browser.key("Escape")
        browser.open(profile(case, "empty", "empty.svg"))
        equal("boxes", 1, browser.evaluate("document.querySelectorAll('.graph g').length"))
        no_failures(browser)


def rows(browser, table):
    """What the rows of a table show, those that the filter leaves: a list of cells each."""
    return browser.evaluate(f"""[...document.querySelectorAll('section.table')[{table}].querySelectorAll('tbody tr')].map(
        row => [...row.cells].map(cell => cell.textContent))""")


def test_flame_page_has_tables_that_sort_filter_and_find(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.html"))
        functions = rows(browser, 0)
        equal("functions", 14, len(functions))
        equal("the heaviest", ["[GPU_Kernel]void gemm<float, 128>(float const*, int)", "50 ms", "25.0 %", "50 ms", "25.0 %"], functions[0])
        heading = "document.querySelectorAll('section.table')[0].querySelectorAll('th button')"
        browser.evaluate(f"{heading}[3].click()")
        equal("by total", "Net.forward (model.py:12)", rows(browser, 0)[0][0])
        browser.evaluate(f"{heading}[3].click()")
        equal("the other way", "[GPU_Set]Device", rows(browser, 0)[0][0])
        browser.evaluate(f"{heading}[0].click()")
        names = [row[0] for row in rows(browser, 0)]
        equal("by name", sorted(names, key=str.lower)[-1], names[-1])
        browser.evaluate("document.querySelector('section.table input').focus()")
        browser.type("NET.")
        equal("filtered", ["Net.forward (model.py:12)"], [row[0] for row in rows(browser, 0)])
        browser.evaluate("document.querySelector('section.table tbody button').click()")
        equal("found in the graph", "matched: 90.5 %", found(browser))
        stacks = rows(browser, 1)
        equal("stacks", 9, len(stacks))
        equal("the heaviest", ["[GPU_Kernel]void gemm<float, 128>(float const*, int)", "50 ms", "25.0 %", "cudaLaunchKernel < "
                               "at::addmm(at::Tensor const&, at::Tensor const&) < Net.forward (model.py:12) < "
                               "train (train.py:88)"], stacks[0])
        no_failures(browser)


def test_flame_page_zooms_as_the_picture_does(case):
    with Browser(case) as browser:
        browser.open(profile(case, "plain", "plain.html"))
        everything = widths(browser)["all"]
        click(browser, "check")
        equal("zoomed", everything, widths(browser)["check"])
        browser.key("Escape")
        equal("back", round(everything / 10), widths(browser)["check"])
        no_failures(browser)


def test_flame_page_of_hostile_names_runs_nothing(case):
    with Browser(case) as browser:
        browser.open(profile(case, "hostile", "hostile.html"))
        equal("rows", True, len(rows(browser, 0)) >= 12)
        for row in range(len(rows(browser, 0))):
            browser.evaluate(f"document.querySelectorAll('section.table tbody button')[{row}].click()")
            if found(browser) in ("no match", "no regular expression"):
                raise Failure(f"{rows(browser, 0)[row][0][:80]!r} is not found")
        equal("title", -1, browser.evaluate("document.title.indexOf('broken')"))
        equal("scripts, data and images", [2, 0], browser.evaluate(
            "[document.querySelectorAll('script').length, document.querySelectorAll('img, image').length]"))
        no_failures(browser)


def test_flame_of_two_profiles_tells_what_changed(case):
    root = xml.etree.ElementTree.parse(profile(case, "diff", "diff.svg")).getroot()
    boxes = {}
    for group in root.iter(SVG + "g"):
        name, *about = group.findtext(SVG + "title").split("\n")
        boxes[name] = (group.find(SVG + "rect").get("class"), about)
    for name, colour in (("check", "d10"), ("[GPU_Kernel]relu(float*)", "d0"), ("all", "d5"),
                         ("[GPU_Kernel]void gemm<float, 128>(float const*, int)", "d7"), ("nvidia_ioctl", "d4")):
        equal("the colour of " + name, colour, boxes[name][0])
    equal("figures", ["before: 50.000 ms, 25.0 %", "after: 25.000 ms, 15.6 %", "-9.4 points"],
          boxes["[GPU_Kernel]void gemm<float, 128>(float const*, int)"][1])
    with Browser(case) as browser:
        browser.open(profile(case, "diff", "diff.svg"))
        equal("width", round(1180 * (20 / 200 + 0) / 2), widths(browser)["check"])
        no_failures(browser)
