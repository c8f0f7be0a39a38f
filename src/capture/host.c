// SPDX-License-Identifier: MIT
#include "capture/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/xalloc.h"

struct host {
	struct utsname uname;
	char driver[64]; /* "": none is loaded */
	char boot[40];   /* "": not known */
	struct buf command;
	struct run_gpu gpus[GPUS_MAX];
	size_t n_gpus;
};

void host_driver_version(const char *text, char *version, size_t size)
{
	*version = '\0';
	while (*text) {
		size_t blanks = strspn(text, " \t\n"), len = strcspn(text + blanks, " \t\n");
		const char *word = text + blanks;

		if (len < size && strspn(word, "0123456789.") == len && memchr(word, '.', len)) {
			memcpy(version, word, len);
			version[len] = '\0';
			return;
		}
		text = word + len;
	}
}

/* The open and the closed kernel module both say it in one of two places. */
static void find_driver(struct host *host)
{
	char line[512];

	if (file_line("/proc/driver/nvidia/version", line, sizeof(line)) ||
	    file_line("/sys/module/nvidia/version", line, sizeof(line)))
		host_driver_version(line, host->driver, sizeof(host->driver));
}

static void find_boot(struct host *host)
{
	file_line("/proc/sys/kernel/random/boot_id", host->boot, sizeof(host->boot));
}

/* As a shell would want to have it: words that hold more than the usual in quotes. */
static void add_word(struct buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_./=:,@%+";

	if (out->len)
		buf_putc(out, ' ');
	if (*word && !word[strspn(word, plain)]) {
		buf_puts(out, word);
		return;
	}
	buf_putc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *word);
	}
	buf_putc(out, '\'');
}

struct host *host_new(char *const *command)
{
	struct host *host = xcalloc(1, sizeof(*host));

	uname(&host->uname);
	find_driver(host);
	find_boot(host);
	for (; command && *command; command++)
		add_word(&host->command, *command);
	return host;
}

void host_free(struct host *host)
{
	if (!host)
		return;
	buf_free(&host->command);
	free(host);
}

static uint64_t known(int64_t number)
{
	return number > 0 ? (uint64_t)number : 0;
}

void host_take_gpus(struct host *host, const struct gpus_sample *sample)
{
	host->n_gpus = sample->n < GPUS_MAX ? sample->n : GPUS_MAX;
	for (size_t i = 0; i < host->n_gpus; i++) {
		const struct gpu *from = &sample->gpus[i];
		struct run_gpu *to = &host->gpus[i];

		*to = (struct run_gpu){
			.memory_bytes = known(from->memory_total_bytes),
			.clock_hz = known(from->clock_hz),
			.memory_bandwidth = known(from->memory_bandwidth),
			.major = (uint32_t)known(from->compute_major),
			.minor = (uint32_t)known(from->compute_minor),
			.multiprocessors = (uint32_t)known(from->multiprocessors),
		};
		snprintf(to->name, sizeof(to->name), "%s", from->name);
		snprintf(to->uuid, sizeof(to->uuid), "%s", from->uuid);
		snprintf(to->bus, sizeof(to->bus), "%s", from->bus);
	}
}

void host_describe(const struct host *host, struct run_info *run)
{
	run->hostname = host->uname.nodename;
	run->kernel_release = host->uname.release;
	run->driver_version = host->driver[0] ? host->driver : NULL;
	run->command = host->command.len ? host->command.data : NULL;
	run->boot = host->boot[0] ? host->boot : NULL;
	run->machine = host->uname.machine;
	run->cpus = (uint32_t)known(sysconf(_SC_NPROCESSORS_ONLN));
	run->memory_bytes = known(sysconf(_SC_PHYS_PAGES)) * known(sysconf(_SC_PAGESIZE));
	run->gpus = host->gpus;
	run->n_gpus = host->n_gpus;
}
