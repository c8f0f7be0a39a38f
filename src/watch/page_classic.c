// SPDX-License-Identifier: MIT
/*
 * The lines that gpuprobe-daemon prints at each interval, to the letter: scripts read them. It
 * prints none for copies, so those are the ones of gpuprobe, its predecessor.
 */
#include "watch/page.h"

#include <ctype.h>

#include "base/text.h"
#include "cuda/error.h"

/* ---- memory -------------------------------------------------------------------------------- */

/* An address is listed for device memory of any kind: host memory is not "on GPU". */
static bool is_on_gpu(const struct watch_allocation *a)
{
	return a->kind != MEMORY_HOST;
}

static void add_allocations(const struct watch_memory *memory, struct buf *out)
{
	buf_puts(out, "per-process memory maps:\n");
	for (size_t p = 0, i = 0; p < memory->n_processes; p++) {
		const struct process *process = memory->processes[p].process;
		bool any = false;

		buf_printf(out, "process %u\n", process->pid);
		while (i < memory->n_allocations && memory->allocations[i].process == process) {
			const struct watch_allocation *a = &memory->allocations[i++];

			if (!is_on_gpu(a))
				continue;
			buf_printf(out, "\t0x%016llx: %llu Bytes\n", (unsigned long long)a->address,
			           (unsigned long long)a->bytes);
			any = true;
		}
		if (!any)
			buf_puts(out, "\tNo allocations on GPU\n");
	}
}

/* Its names of errors begin with a capital. */
static void add_error(const struct watch_failure *failure, struct buf *out)
{
	const char *name = failure->function
	                           ? cuda_error_name(failure->function->layer, failure->result)
	                           : NULL;

	if (name) {
		buf_putc(out, (char)toupper((unsigned char)name[0]));
		buf_puts(out, name + 1);
	} else {
		buf_printf(out, "%d", failure->result);
	}
}

static void add_failures(const struct watch_memory *memory, struct buf *out)
{
	buf_puts(out, "per-process error histograms:\n");
	for (size_t p = 0; p < memory->n_processes; p++) {
		const struct process *process = memory->processes[p].process;
		bool any = false;

		buf_printf(out, "process %u\n", process->pid);
		for (size_t i = 0; i < memory->n_failures; i++) {
			const struct watch_failure *failure = &memory->failures[i];

			if (failure->process != process)
				continue;
			buf_printf(out, "\t(%s[",
			           failure->function ? failure->function->name : "?");
			add_error(failure, out);
			buf_printf(out, "]): %llu\n", (unsigned long long)failure->count);
			any = true;
		}
		if (!any)
			buf_puts(out, "\tNo errors to report\n");
	}
}

/* ---- launches ------------------------------------------------------------------------------ */

static bool is_first_of_process(const struct watch_launches *launches, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (launches->kernels[i].process == launches->kernels[at].process)
			return false;
	}
	return true;
}

static void add_kernels(const struct watch_launches *launches, const struct process *process,
                        struct buf *out)
{
	buf_printf(out, "pid: %u\n", process->pid);
	for (size_t i = 0; i < launches->n_kernels; i++) {
		const struct watch_kernel *kernel = &launches->kernels[i];

		if (kernel->process != process || !kernel->kernel)
			continue;
		buf_printf(out, "\t0x%llx (", (unsigned long long)kernel->handle);
		if (kernel->kernel->resolved)
			text_add_safe(out, kernel->kernel->mangled);
		else
			buf_puts(out, "unknown kernel");
		buf_printf(out, ") -> %llu\n", (unsigned long long)kernel->count);
	}
}

static void add_launches(const struct watch_launches *launches, struct buf *out)
{
	uint64_t total = 0;

	for (size_t i = 0; i < launches->n_kernels; i++)
		total += launches->kernels[i].kernel ? launches->kernels[i].count : 0;
	buf_printf(out, "total kernel launches: %llu\n", (unsigned long long)total);
	for (size_t i = 0; i < launches->n_kernels; i++) {
		if (is_first_of_process(launches, i))
			add_kernels(launches, launches->kernels[i].process, out);
	}
}

/* ---- copies -------------------------------------------------------------------------------- */

/* It times synchronous copies, and takes their bytes by that time for the bandwidth. */
static void add_copies(const struct watch_copies *copies, struct buf *out)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < copies->n_rows; i++)
		calls += copies->rows[i].set || copies->rows[i].async ? 0 : copies->rows[i].calls;
	buf_printf(out, "Traced %llu cudaMemcpy calls\n", (unsigned long long)calls);
	for (size_t i = 0; i < copies->n_rows; i++) {
		const struct watch_copies_row *row = &copies->rows[i];
		double seconds = (double)row->ns / 1e9;

		if (row->set || row->async || !row->ns)
			continue;
		buf_printf(out, "\t%s %.5f bytes/sec for %.5f secs\n",
		           api_direction_name(row->direction), (double)row->bytes / seconds,
		           seconds);
	}
}

void page_classic(const struct watch_page *page, const struct page_options *options,
                  struct buf *out)
{
	if (page->memory) {
		add_allocations(page->memory, out);
		add_failures(page->memory, out);
	}
	if (page->launches)
		add_launches(page->launches, out);
	if (page->copies)
		add_copies(page->copies, out);
}
