# SPDX-License-Identifier: MIT
"""Waits in a condition from its first moments on until a thread wakes it, and ends in the next moment."""

import os
import threading
import time

condition = threading.Condition()


def wake():
    time.sleep(1)
    with condition:
        condition.notify_all()


def fourth():
    with condition:
        condition.wait()  # at fourth
        os._exit(0)


def third():
    fourth()


def second():
    third()


def first():
    threading.Thread(target=wake).start()
    second()


first()
