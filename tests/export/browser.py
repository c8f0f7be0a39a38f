# SPDX-License-Identifier: MIT
"""A headless Chromium that a test clicks and types in, through its debugging pipe."""

import json
import os
import shutil
import subprocess
import threading

from case import Failure, Skip

KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "Home": 36}
CONTROL = 2  # the bit of a modifier


class Browser:
    """with Browser(case) as browser: browser.open(path); browser.key("Enter")"""

    def __init__(self, case, width=1200, height=800):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or \
            shutil.which("google-chrome")
        if not program:
            raise Skip("no Chromium")
        self.number, self.session, self.failures, self.rest = 0, None, [], b""
        command_read, self.commands = os.pipe()
        self.answers, answer_write = os.pipe()

        def as_3_and_4():
            keep_read, keep_write = os.dup(command_read), os.dup(answer_write)
            os.dup2(keep_read, 3)
            os.dup2(keep_write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--window-size={width},{height}", f"--user-data-dir={case.path('profile')}",
             "about:blank"],
            preexec_fn=as_3_and_4, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self.watchdog = threading.Timer(150, self.process.kill)
        self.watchdog.start()

    def __enter__(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(domain + ".enable")
        return self

    def __exit__(self, *exception):
        self.session, self.number = None, self.number + 1
        try:
            os.write(self.commands, json.dumps({"id": self.number, "method": "Browser.close"}).encode() + b"\0")
            while os.read(self.answers, 1 << 16):  # until all of its processes have ended
                pass
        except OSError:
            self.process.kill()
        self.process.wait()
        self.watchdog.cancel()
        os.close(self.commands)
        os.close(self.answers)

    def receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.answers, 1 << 16)
            if not data:
                raise Failure("the browser ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        """What a picture must not do: fail, ask for a file, open a dialog."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.failures.append(params["exceptionDetails"]["exception"].get("description"))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.failures.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(self.url):
            self.failures.append("asks for " + params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.failures.append("a dialog")

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.url = "file://" + path
        self.send("Page.navigate", url=self.url)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise Failure(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key, modifiers=0):
        code = KEYS.get(key) or ord(key.upper())
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not modifiers else "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code,
                  modifiers=modifiers, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code,
                  modifiers=modifiers)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def move(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
