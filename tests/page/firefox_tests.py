# SPDX-License-Identifier: MIT
"""Made-up pages in a headless Firefox: the tests of Chromium that ask for no more than a script and keys."""

import browser_tests
from case import equal
from firefox import Firefox

ALSO = (browser_tests.test_opens, browser_tests.test_hostile_names, browser_tests.test_search_leads_to_a_slow_launch_and_its_work,
        browser_tests.test_a_wait_leads_to_who_ended_it, browser_tests.test_cause_leads_to_its_place, browser_tests.test_flame_graph, browser_tests.test_large_page_is_the_same_in_words)


def in_firefox(test):
    def run(case):
        chromium, browser_tests.Browser = browser_tests.Browser, Firefox
        try:
            test(case)
        finally:
            browser_tests.Browser = chromium
    return run


def test_dark(case):
    """As the system has it; the canvas, too."""
    shades = {}
    for dark in (False, True):
        with Firefox(case, dark) as browser:
            browser_tests.opened(case, browser, "small")
            shades[dark] = browser.evaluate("getComputedStyle(document.body).backgroundColor"), len(browser.picture()) > 10000
    equal("shades differ", True, shades[False][0] != shades[True][0] and shades[False][1] and shades[True][1])


def all_tests():
    return [("firefox_" + test.__name__.removeprefix("test_"), in_firefox(test)) for test in ALSO] + [("firefox_dark", test_dark)]
