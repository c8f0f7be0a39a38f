// SPDX-License-Identifier: MIT
#include "base/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (64 * 1024)

void lines_init(struct lines *lines, FILE *out, const char *what)
{
	memset(lines, 0, sizeof(*lines));
	lines->out = out;
	lines->what = what;
	buf_reserve(&lines->pending, PIECE_BYTES);
}

void lines_free(struct lines *lines)
{
	buf_free(&lines->pending);
}

/* Writes to the descriptor; returns 0 or a negative errno, and in `done` how far it came. */
static int write_all(int fd, const char *data, size_t len, size_t *done)
{
	*done = 0;
	while (*done < len) {
		ssize_t n = write(fd, data + *done, len - *done);

		if (n >= 0) {
			*done += n;
		} else if (errno == EAGAIN) {
			/* a terminal or pipe that another program made non-blocking */
			struct pollfd ready = { .fd = fd, .events = POLLOUT };

			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Takes the last, incomplete line off a file again, unless somebody else wrote after it. */
static void drop_partial_line(int fd, const char *data, size_t done)
{
	size_t whole = done;
	struct stat st;
	off_t at;

	while (whole && data[whole - 1] != '\n')
		whole--;
	if (whole == done || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	at = lseek(fd, 0, SEEK_CUR);
	if (at != st.st_size)
		return;
	at -= (off_t)(done - whole);
	if (!ftruncate(fd, at))
		lseek(fd, at, SEEK_SET);
}

static int write_pending(struct lines *lines)
{
	const struct buf *pending = &lines->pending;
	int fd = fileno(lines->out), rc;
	size_t done;

	if (fd < 0) /* a stream without a descriptor: memory */
		return fwrite(pending->data, 1, pending->len, lines->out) == pending->len &&
		                       !fflush(lines->out)
		               ? 0
		               : -EIO;
	if (fflush(lines->out))
		return -errno;
	rc = write_all(fd, pending->data, pending->len, &done);
	if (rc)
		drop_partial_line(fd, pending->data, done);
	return rc;
}

static int explain(struct lines *lines, int code)
{
	if (code == -EPIPE)
		return err_set(&lines->failure, code,
		               "cannot write %s: the program that read it has closed its end",
		               lines->what);
	if (code == -ENOSPC || code == -EDQUOT)
		return err_set(&lines->failure, code,
		               "cannot write %s: %s; free some space or choose another place "
		               "(what was written so far is whole)",
		               lines->what, strerror(-code));
	return err_set(&lines->failure, code, "cannot write %s: %s", lines->what, strerror(-code));
}

static int failed_before(const struct lines *lines, struct err *err)
{
	if (lines->failure.code && err)
		*err = lines->failure;
	return lines->failure.code;
}

int lines_flush(struct lines *lines, struct err *err)
{
	int rc;

	if (!lines->failure.code && lines->pending.len) {
		rc = write_pending(lines);
		if (rc)
			explain(lines, rc);
	}
	buf_reset(&lines->pending);
	return failed_before(lines, err);
}

int lines_added(struct lines *lines, struct err *err)
{
	if (lines->pending.len < PIECE_BYTES && !lines->failure.code)
		return 0;
	return lines_flush(lines, err);
}
