// SPDX-License-Identifier: MIT
/*
 * Any bytes as a trace file. A first byte of 'F' or 'f' is followed by a file as it is; else the
 * rest is taken for unpacked chunks, which are packed here, so that the fuzzer reaches what is
 * inside: type, events, announced, two bytes of length, then the payload. With a small letter only
 * a part of the file is read. Checksums are not looked at
 * (FUZZING in src/trace/chunk.c).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/calls.h"
#include "trace/chunk.h"
#include "trace/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a consumer that looks at everything --------------------------------------------------- */

static uint64_t sum; /* so that nothing is optimised away */

static void look_at(const char *text)
{
	sum += text ? strlen(text) : 0;
}

static void look_at_kernel(const struct kernel *kernel)
{
	if (!kernel)
		return;
	look_at(kernel->name);
	look_at(kernel->mangled);
}

static void look_at_call(const struct call *call)
{
	const struct api_arg *args;
	size_t n;

	if (!call->function->name || !call->function->lib || call->args.n_args > API_ARGS_MAX ||
	    call->function->layer > LAYER_RUNTIME || call->function->cls >= CLASS_COUNT ||
	    call->op >= OP_COUNT || (call->op == OP_LAUNCH && !call->kernel) ||
	    call->args.direction >= DIRECTION_COUNT || (call->op && !call->function->api))
		abort();
	look_at(call->function->name);
	look_at(call->function->lib);
	look_at(call->text);
	look_at_kernel(call->kernel);
	n = call->function->api ? api_args(call->function->api, &args) : 0;
	for (size_t i = 0; i < n; i++)
		sum += strlen(args[i].name) + call->args.arg[i];
}

static void look_at_range(const struct range *range)
{
	if (!range->name || range->kind >= RANGE_COUNT)
		abort();
	look_at(range->name);
	look_at(range->domain);
}

static int look(struct consumer *self, const struct event *event, struct err *err)
{
	if (!event->process || memchr(event->process->comm, 0, 16) == NULL)
		abort();
	if (event->type == EVENT_CALL)
		look_at_call(event->call);
	else if (event->type == EVENT_ACTIVITY)
		look_at_kernel(event->activity->kernel);
	else if (event->type == EVENT_RANGE)
		look_at_range(event->range);
	else if (event->type == EVENT_THREAD)
		look_at(event->thread->comm);
	return 0;
}

static int look_at_run(struct consumer *self, const struct run_info *run, struct err *err)
{
	look_at(run->hostname);
	look_at(run->kernel_release);
	look_at(run->driver_version);
	look_at(run->command);
	for (size_t i = 0; i < run->n_misses; i++) {
		look_at(run->misses[i].name);
		look_at(run->misses[i].lib);
		look_at(run->misses[i].why);
	}
	return 0;
}

static void look_free(struct consumer *self)
{
}

static const struct consumer_ops look_ops = {
	.begin = look_at_run, .event = look, .end = look_at_run, .free = look_free
};

/* ---- files --------------------------------------------------------------------------------- */

static void pack(const uint8_t *data, size_t size, struct buf *file)
{
	static const uint8_t header[FORMAT_HEADER_BYTES] = FORMAT_MAGIC "\x01";
	struct packer *packer = packer_new();

	buf_add(file, header, sizeof(header));
	while (size >= 5) {
		struct chunk_head head = { .type = data[0],
			                   .events = data[1],
			                   .announced = data[2] };
		size_t len = data[3] | (size_t)data[4] << 8;

		data += 5;
		size -= 5;
		len = len < size ? len : size;
		packer_add(packer, &head, data, len, file);
		data += len;
		size -= len;
	}
	packer_free(packer);
}

static void read_file(const struct buf *bytes, bool part)
{
	struct trace_read_options options = { .from_ns = part ? 5000010000000 : 0 };
	static FILE *nowhere;
	struct consumer looker = { .ops = &look_ops };
	struct consumer *consumers[2] = { &looker };
	struct trace_file *file;
	struct err err = { 0 };
	char path[64];
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, bytes->data, bytes->len) == (ssize_t)bytes->len &&
	    !trace_open(path, &file, &err)) {
		consumers[1] = calls_new(&(struct calls_options){ .text = nowhere });
		trace_read(file, &options, consumers, 2, &err);
		consumers[1]->ops->free(consumers[1]);
		trace_close(file);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = { 0 };

	if (!size)
		return 0;
	if ((data[0] | 0x20) == 'f')
		buf_add(&file, data + 1, size - 1);
	else
		pack(data + 1, size - 1, &file);
	read_file(&file, data[0] & 0x20);
	buf_free(&file);
	return 0;
}
