// SPDX-License-Identifier: MIT
#include "probe/kernel_log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

struct kernel_log {
	int fd;
	uint64_t lost;
	char line[8192]; /* the kernel gives none that is longer */
};

struct kernel_log *kernel_log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct kernel_log *log;

	if (fd < 0)
		return NULL;
	if (lseek(fd, 0, SEEK_END) < 0) {
		close(fd);
		return NULL;
	}
	log = xcalloc(1, sizeof(*log));
	log->fd = fd;
	return log;
}

void kernel_log_free(struct kernel_log *log)
{
	if (!log)
		return;
	close(log->fd);
	free(log);
}

/*
 * The first number has the facility above three bits of urgency. Of what user space writes to the
 * log it is never 0: a container's root may write there what looks like the driver's line.
 */
const char *kernel_log_text(char *record)
{
	const char *text;
	char *end;
	unsigned long facility = strtoul(record, &end, 10) >> 3;

	record[strcspn(record, "\n")] = '\0'; /* its fields follow */
	text = strchr(record, ';');
	return text && isdigit((unsigned char)record[0]) && *end == ',' && !facility ? text + 1
	                                                                             : NULL;
}

const char *kernel_log_line(struct kernel_log *log)
{
	for (;;) {
		ssize_t n = read(log->fd, log->line, sizeof(log->line) - 1);
		const char *text;

		if (n < 0 && errno == EPIPE) { /* the next one is there, others before it not */
			log->lost++;
			continue;
		}
		if (n <= 0)
			return NULL;
		log->line[n] = '\0';
		text = kernel_log_text(log->line);
		if (text)
			return text;
	}
}

uint64_t kernel_log_lost(const struct kernel_log *log)
{
	return log->lost;
}
