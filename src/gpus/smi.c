// SPDX-License-Identifier: MIT
#include "gpus/smi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/xalloc.h"

#define QUERY                                                                                      \
	"--query-gpu=index,name,utilization.gpu,memory.used,memory.total,power.draw,"              \
	"enforced.power.limit,temperature.gpu,uuid,pci.bus_id,clocks.max.sm"

struct smi {
	int output; /* what it writes, does not block */
	int pidfd;  /* its pid may be another's by now: a command's tracer waits for all children */
	struct buf line;
};

/* ---- lines --------------------------------------------------------------------------------- */

/* The next field, without blanks around it; NULL where there is none. */
static char *next_field(char **rest)
{
	char *field = strsep(rest, ","), *end;

	if (!field)
		return NULL;
	field += strspn(field, " ");
	end = field + strlen(field);
	while (end > field && end[-1] == ' ')
		*--end = '\0';
	return field;
}

/* A number times `unit`; "[N/A]" is GPU_UNKNOWN. */
static int64_t next_number(char **rest, double unit)
{
	char *field = next_field(rest), *end;
	double value;

	if (!field)
		return GPU_UNKNOWN;
	value = strtod(field, &end);
	if (end == field || *end || !(value >= 0 && value < 1e12))
		return GPU_UNKNOWN;
	return (int64_t)(value * unit + 0.5);
}

/* "[N/A]" and what is not there are no text. */
static void next_word(char **rest, char *text, size_t size)
{
	const char *field = next_field(rest);

	snprintf(text, size, "%s", field && *field != '[' ? field : "");
}

void smi_parse(const char *line, struct gpus_sample *sample)
{
	char *copy = xstrdup(line), *rest = copy;
	int64_t index = next_number(&rest, 1);
	char *name = next_field(&rest);

	if (name && index >= 0 && index < GPUS_MAX) {
		struct gpu *gpu = &sample->gpus[index];

		snprintf(gpu->name, sizeof(gpu->name), "%s", name);
		gpu->busy_percent = (int)next_number(&rest, 1);
		gpu->memory_used_bytes = next_number(&rest, 1 << 20);
		gpu->memory_total_bytes = next_number(&rest, 1 << 20);
		gpu->power_mw = next_number(&rest, 1000);
		gpu->power_limit_mw = next_number(&rest, 1000);
		gpu->temperature_c = (int)next_number(&rest, 1);
		next_word(&rest, gpu->uuid, sizeof(gpu->uuid));
		next_word(&rest, gpu->bus, sizeof(gpu->bus));
		gpu->clock_hz = next_number(&rest, 1e6);
		gpu->compute_major = gpu->compute_minor = gpu->multiprocessors = GPU_UNKNOWN;
		gpu->memory_bandwidth = GPU_UNKNOWN;
		if (sample->n <= (size_t)index)
			sample->n = (size_t)index + 1;
	}
	free(copy);
}

static void take_lines(struct smi *smi, struct gpus_sample *sample)
{
	char *at = smi->line.data, *end;
	size_t taken;

	while ((end = strchr(at, '\n'))) {
		*end = '\0';
		smi_parse(at, sample);
		at = end + 1;
	}
	taken = (size_t)(at - smi->line.data);
	memmove(smi->line.data, at, smi->line.len - taken + 1);
	smi->line.len -= taken;
	if (smi->line.len > 4096) /* no line of ours */
		buf_reset(&smi->line);
}

bool smi_read(struct smi *smi, int wait_ms, struct gpus_sample *sample)
{
	struct pollfd ready = { .fd = smi->output, .events = POLLIN };
	char piece[4096];
	ssize_t n;

	poll(&ready, 1, wait_ms);
	while ((n = read(smi->output, piece, sizeof(piece))) > 0) {
		buf_add(&smi->line, piece, (size_t)n);
		take_lines(smi, sample);
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- the child ----------------------------------------------------------------------------- */

static const char *find(void)
{
	static const char *const places[] = { "/usr/bin/nvidia-smi",
		                              "/usr/local/nvidia/bin/nvidia-smi",
		                              "/opt/bin/nvidia-smi" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* Only async-signal-safe calls: other threads exist. A broken pipe does not end it,
 * SIGKILL does. */
static void child_main(const char *path, char *const *argv, const int output[2], pid_t parent)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() != parent || dup2(null, 0) < 0 || dup2(output[1], 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
	execv(path, argv);
	_exit(127);
}

static int start(const char *path, uint64_t interval_ns, const int output[2])
{
	char loop[48];
	char *argv[] = { (char *)"nvidia-smi", (char *)QUERY,
		         (char *)"--format=csv,noheader,nounits", loop, NULL };
	pid_t parent = getpid(), pid;

	snprintf(loop, sizeof(loop), "--loop-ms=%llu", (unsigned long long)interval_ns / 1000000);
	pid = fork();
	if (pid == 0)
		child_main(path, argv, output, parent);
	return pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

struct smi *smi_open(const char *path, uint64_t interval_ns)
{
	struct smi *smi;
	int output[2], pidfd;

	path = path ? path : find();
	if (!path || pipe2(output, O_CLOEXEC))
		return NULL;
	pidfd = start(path, interval_ns, output);
	close(output[1]);
	if (pidfd < 0) {
		close(output[0]);
		return NULL;
	}
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	smi = xcalloc(1, sizeof(*smi));
	smi->output = output[0];
	smi->pidfd = pidfd;
	return smi;
}

void smi_close(struct smi *smi)
{
	if (!smi)
		return;
	syscall(SYS_pidfd_send_signal, smi->pidfd, SIGKILL, NULL, 0);
	waitid((idtype_t)P_PIDFD, (id_t)smi->pidfd, NULL, WEXITED);
	close(smi->pidfd);
	close(smi->output);
	buf_free(&smi->line);
	free(smi);
}
