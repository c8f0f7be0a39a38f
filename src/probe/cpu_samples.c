// SPDX-License-Identifier: MIT
#include "probe/cpu_samples.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "probe/bpf_call.h"

struct cpu_samples {
	size_t n;
	int events[];
};

/* The CPU's clock, not its cycles: those are not everywhere, and in virtual machines least of all.
 */
static int open_event(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		                        .size = sizeof(attr),
		                        .config = PERF_COUNT_SW_CPU_CLOCK,
		                        .sample_period = period_ns,
		                        .exclude_idle = 1,
		                        .disabled = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int add_cpu(struct cpu_samples *samples, int program, int cpu, uint64_t period_ns)
{
	int event = open_event(cpu, period_ns);

	if (event < 0)
		return errno == ENODEV ? 0 : -errno; /* it is offline */
	samples->events[samples->n++] = event;
	return perf_event_run(event, program);
}

int cpu_samples_begin(int program, uint64_t period_ns, struct cpu_samples **samples,
                      struct err *err)
{
	int cpus = libbpf_num_possible_cpus(), r = 0;
	struct cpu_samples *s;

	if (cpus < 1)
		return err_set(err, -cpus, "counting CPUs: %s", strerror(-cpus));
	s = xcalloc(1, sizeof(*s) + (size_t)cpus * sizeof(*s->events));
	for (int cpu = 0; cpu < cpus && !r; cpu++)
		r = add_cpu(s, program, cpu, period_ns);
	if (r) {
		cpu_samples_end(s);
		return err_set(err, r, "taking samples of the CPUs: %s", strerror(-r));
	}
	*samples = s;
	return 0;
}

void cpu_samples_end(struct cpu_samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->n; i++)
		close(samples->events[i]);
	free(samples);
}
