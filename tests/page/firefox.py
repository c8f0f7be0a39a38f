# SPDX-License-Identifier: MIT
"""A headless Firefox for tests of Chromium's that need no more than this, through Marionette, its own protocol."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time

from case import Failure, Skip

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "Home": "\ue011"}
PREFERENCES = """user_pref("marionette.port", %d);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("ui.systemUsesDarkTheme", %d);
user_pref("layout.css.prefers-color-scheme.content-override", 2);
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class Firefox:
    """with Firefox(case) as browser: browser.open(path); browser.key("Enter")"""

    def __init__(self, case, dark=False):
        program = shutil.which("firefox-esr") or shutil.which("firefox")
        if not program:
            raise Skip("no Firefox")
        self.number, self.rest, self.port = 0, b"", free_port()
        profile = case.path("firefox")
        shutil.rmtree(profile, ignore_errors=True)
        os.makedirs(profile)
        with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as file:
            file.write(PREFERENCES % (self.port, dark))
        self.process = subprocess.Popen([program, "--headless", "--marionette", "--no-remote", "--profile", profile, "about:blank"],
                                        env={**os.environ, "HOME": profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.watchdog = threading.Timer(150, self.process.kill)
        self.watchdog.start()

    def __enter__(self):
        end = time.monotonic() + 60
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise Failure("Firefox does not listen") from None
                time.sleep(0.1)
        self.receive()
        self.command("WebDriver:NewSession")
        return self

    def __exit__(self, *exception):
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.watchdog.cancel()

    def receive(self):
        """A length, a colon, and JSON of so many bytes."""
        while True:
            length, colon, rest = self.rest.partition(b":")
            if colon and len(rest) >= int(length):
                self.rest = rest[int(length):]
                return json.loads(rest[:int(length)])
            data = self.socket.recv(1 << 16)
            if not data:
                raise Failure("Firefox ended")
            self.rest += data

    def command(self, name, **params):
        self.number += 1
        message = json.dumps([0, self.number, name, params]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, number, error, result = self.receive()
        if error or number != self.number:
            raise Failure(f"{name}: {error}")
        return result

    def open(self, path):
        self.command("WebDriver:Navigate", url="file://" + path)

    def evaluate(self, expression):
        """What it is, where JSON has it; statements have no value."""
        if "; " in expression and not expression.startswith("("):
            script = expression
        else:
            script = f"const it = ({expression}); try {{ return JSON.stringify(it) ?? null; }} catch {{ return null; }}"
        value = self.command("WebDriver:ExecuteScript", script=script, args=[])["value"]
        return value if value is None else json.loads(value)

    @property
    def failures(self):
        """A page asks for nothing."""
        return self.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")

    def size(self, width, height):
        self.command("WebDriver:SetWindowRect", width=width, height=height)

    def press(self, character):
        keys = [{"type": what, "value": character} for what in ("keyDown", "keyUp")]
        self.command("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": keys}])

    def key(self, name):
        self.press(KEYS.get(name, name))

    def type(self, text):
        for character in text:
            self.press(character)

    def picture(self):
        """As base64 of a PNG."""
        return self.command("WebDriver:TakeScreenshot", full=False)["value"]
