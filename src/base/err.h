/* SPDX-License-Identifier: MIT */
/*
 * Errors. A function that can fail takes a `struct err *` and returns 0 or a negative errno. On
 * failure it leaves one sentence for the user there: what was being done, to what, why it failed
 * and what to try. Nothing below src/cli prints it.
 */
#pragma once

struct err {
	int code;       /* a negative errno, 0 while nothing failed */
	char text[768]; /* one sentence without a newline */
};

/*
 * Writes the sentence and returns `code`, made negative, so that callers can
 * `return err_set(err, ENOENT, "no process %d", pid)`. `err` may be NULL when only the code
 * matters. Names of targets and files that stand in it are made harmless to a terminal.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence already there and returns its code. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
