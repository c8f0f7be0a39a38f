// SPDX-License-Identifier: MIT
#include "output/describe.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "output/format.h"
#include "output/sink.h"

/* ---- activity ------------------------------------------------------------------------------ */

static const char *const activity_directions[DIRECTION_COUNT] = {
	[DIRECTION_NONE] = "Unknown",    [DIRECTION_H2D] = "HtoD", [DIRECTION_D2H] = "DtoH",
	[DIRECTION_D2D] = "DtoD",        [DIRECTION_H2H] = "HtoH", [DIRECTION_P2P] = "PtoP",
	[DIRECTION_DEFAULT] = "Unknown",
};

static const char *const activity_memories[] = {
	[ACTIVITY_MEMORY_UNKNOWN] = "Unknown",
	[ACTIVITY_MEMORY_PAGEABLE] = "Pageable",
	[ACTIVITY_MEMORY_PINNED] = "Pinned",
	[ACTIVITY_MEMORY_DEVICE] = "Device",
	[ACTIVITY_MEMORY_ARRAY] = "Array",
	[ACTIVITY_MEMORY_MANAGED] = "Managed",
	[ACTIVITY_MEMORY_DEVICE_STATIC] = "Device Static",
	[ACTIVITY_MEMORY_MANAGED_STATIC] = "Managed Static",
};

const char *activity_memory_name(enum activity_memory memory)
{
	return memory < ARRAY_SIZE(activity_memories) ? activity_memories[memory] : "Unknown";
}

const char *activity_direction_name(enum api_direction direction)
{
	return direction < DIRECTION_COUNT ? activity_directions[direction] : "Unknown";
}

#define KERNEL_NAME_SHOWN 1024

bool kernel_is_cut(const struct kernel *kernel)
{
	return strlen(kernel->name) > KERNEL_NAME_SHOWN;
}

void kernel_add_shown(const struct kernel *kernel, struct buf *out)
{
	size_t len = KERNEL_NAME_SHOWN;

	if (!kernel_is_cut(kernel)) {
		buf_puts(out, kernel->name);
		return;
	}
	while (len && (kernel->name[len] & 0xc0) == 0x80) /* within a character */
		len--;
	buf_add(out, kernel->name, len);
	buf_printf(out, "... [kernel %u]", kernel->id);
}

void kernel_add_json(const struct kernel *kernel, struct buf *out)
{
	AT_END(buf_free) struct buf shown = { 0 };

	if (kernel_is_cut(kernel))
		kernel_add_shown(kernel, &shown);
	buf_json_string(out, shown.data ? shown.data : kernel->name);
}

void activity_name(const struct activity *activity, struct buf *out)
{
	const char *title = activity_words[activity->kind].title;

	if (activity->kind == ACTIVITY_KERNEL && activity->kernel)
		kernel_add_shown(activity->kernel, out);
	else if (activity->kind == ACTIVITY_KERNEL)
		buf_puts(out, "unknown kernel");
	else if (activity->kind == ACTIVITY_COPY)
		buf_printf(out, "%s %s (%s -> %s)", title,
		           activity_direction_name(activity->direction),
		           activity_memory_name(activity->source),
		           activity_memory_name(activity->destination));
	else if (activity_is_transfer(activity))
		buf_printf(out, "%s (%s)", title, activity_memory_name(activity->destination));
	else
		buf_printf(out, "%s %" PRIu64, title, activity->graph);
}

unsigned rows_choose_span(struct rows *rows, uint64_t begin_ns, uint64_t end_ns)
{
	unsigned row = 0;

	while (row < ROWS_MAX - 1 && rows->end_ns[row] > begin_ns)
		row++;
	rows->end_ns[row] = end_ns;
	return row;
}

unsigned rows_choose(struct rows *rows, const struct activity *activity)
{
	return rows_choose_span(rows, activity->begin_ns, activity->end_ns);
}

/* ---- describe gpu -------------------------------------------------------------------------- */

/* What ran on the GPU, and ranges, in the words of the table. */

static void add_word(struct buf *out, const char *text)
{
	if (out->len)
		buf_putc(out, ' ');
	buf_puts(out, text);
}

static void add_number(struct buf *out, const char *label, uint64_t value)
{
	add_word(out, label);
	buf_u64(out, value);
}

/* "GPU 0 stream 7", with the context where there is more than one. */
static void add_lane(struct buf *out, const struct activity *a)
{
	add_number(out, "GPU ", a->device);
	if (a->context > 1)
		add_number(out, "context ", a->context);
	add_number(out, "stream ", a->stream);
}

static void add_bandwidth(struct buf *out, const struct activity *a)
{
	uint64_t ns = activity_duration_ns(a);

	if (!ns || !a->bytes)
		return;
	add_word(out, "");
	buf_printf(out, "%.1f GB/s", (double)a->bytes / (double)ns);
}

static void describe_kernel(const struct activity *a, struct description *d)
{
	text_add_safe(&d->subject, a->kernel ? a->kernel->name : "unknown kernel");
	add_word(&d->words, "grid=");
	add_dims(&d->words, a->grid);
	add_word(&d->words, "block=");
	add_dims(&d->words, a->block);
}

static void describe_transfer(const struct activity *a, struct description *d)
{
	struct buf *out = &d->words;

	if (a->kind == ACTIVITY_COPY && a->direction != DIRECTION_NONE)
		add_word(out, api_direction_name(a->direction));
	add_word(out, "");
	buf_bytes(out, a->bytes);
	if (a->kind == ACTIVITY_COPY) {
		add_word(out, activity_memory_name(a->source));
		buf_puts(out, " ->");
	}
	add_word(out, activity_memory_name(a->destination));
	if (a->kind == ACTIVITY_COPY && a->direction == DIRECTION_P2P)
		add_number(out, "of GPU ", a->peer_device);
	add_bandwidth(out, a);
}

static void description_reset(struct description *description);

void describe_activity(const struct activity *a, const struct delay *delay, struct description *d)
{
	description_reset(d);
	if (a->kind == ACTIVITY_KERNEL)
		describe_kernel(a, d);
	else if (activity_is_transfer(a))
		describe_transfer(a, d);
	if (a->graph)
		add_number(&d->words, "graph=", a->graph);
	if (a->graph_node)
		add_number(&d->words, "node=", a->graph_node);
	add_lane(&d->words, a);
	if (delay->queued) {
		add_word(&d->words, "queued ");
		buf_duration(&d->words, delay->queue_ns);
	} else if (delay->early_ns) {
		add_word(&d->words, "begins ");
		buf_duration(&d->words, delay->early_ns);
		buf_puts(&d->words, " before its call (clocks differ)");
	}
}

void describe_range(const struct range *range, struct description *d)
{
	description_reset(d);
	for (uint32_t i = 0; i < range->depth && i < 16; i++) /* a damaged file can say anything */
		buf_puts(&d->subject, "  ");
	text_add_safe(&d->subject, range->name);
	if (range->domain) {
		add_word(&d->words, "domain=");
		text_add_safe(&d->words, range->domain);
	}
	if (range->stream)
		add_number(&d->words, "stream ", range->stream);
}

static void add_who(struct buf *out, const char *before, const char *name, uint32_t number)
{
	buf_puts(out, before);
	text_add_safe(out, name);
	buf_printf(out, " (%u)", number);
}

/* "disk, then without a CPU for 500.00 us, which cc1plus (9100) had" */
void describe_wait(const struct sample *sample, struct description *d)
{
	const char *name = wait_kind_name(sample->wait);
	struct buf *out = &d->words;

	description_reset(d);
	buf_puts(out, name ? name : "unknown");
	if (sample->blocked == BLOCKED_STILL)
		buf_puts(out, ", to the end of the trace");
	if (sample->blocked == BLOCKED_WOKEN && sample->waker)
		add_who(out, ", woken by ", sample->waker, sample->waker_tid);
	if (sample->runnable_ns && sample->wait != WAIT_CPU) {
		buf_puts(out, ", then without a CPU for ");
		buf_duration(out, sample->runnable_ns);
	}
	if (!sample->rival)
		return;
	add_who(out, ", which ", sample->rival, sample->rival_pid);
	buf_puts(out, " had");
}

/* ---- pieces -------------------------------------------------------------------------------- */

static void add_hex(struct buf *out, const char *label, uint64_t value)
{
	add_word(out, label);
	buf_hex(out, value);
}

static void add_bytes(struct buf *out, const char *label, uint64_t bytes)
{
	add_word(out, label);
	buf_bytes(out, bytes);
}

static void add_named(struct buf *out, const struct call *call, const struct api_arg *args,
                      size_t i)
{
	add_word(out, args[i].name);
	buf_putc(out, '=');
	add_arg(out, call, args, i);
}

static void add_stream_word(struct buf *out, const struct call *call)
{
	if (!call_has_stream(call))
		return;
	add_word(out, "stream=");
	add_stream(out, call, call->args.stream);
}

static void add_async(struct buf *out, const struct call *call)
{
	if (api_is_async(call->function->api))
		add_word(out, "async");
	add_stream_word(out, call);
}

/* Flags and plain numbers that say something beyond the form that an op has. */
static void add_options(struct buf *out, const struct call *call)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_HEX && !args[i].out && call->args.arg[i])
			add_named(out, call, args, i);
	}
}

/* ---- forms --------------------------------------------------------------------------------- */

static bool all_zero(const uint32_t dims[3])
{
	return !dims[0] && !dims[1] && !dims[2];
}

/* A launch whose configuration could not be read has no grid at all; a wrong one has one zero. */
static void add_extent(struct buf *out, const char *label, const uint32_t dims[3])
{
	add_word(out, label);
	if (all_zero(dims))
		buf_putc(out, '?');
	else
		add_dims(out, dims);
}

static void describe_launch(const struct call *call, struct description *d)
{
	struct buf *out = &d->words;

	if (call->kernel)
		text_add_safe(&d->subject, call->kernel->name);
	else if (call->args.handle)
		buf_hex(&d->subject, call->args.handle);
	add_extent(out, "grid=", call->args.grid);
	add_extent(out, "block=", call->args.block);
	add_word(out, "shmem=");
	if (call->args.shmem_bytes)
		buf_bytes(out, call->args.shmem_bytes);
	else
		buf_putc(out, '0');
	add_stream_word(out, call);
}

static void describe_graph_launch(const struct call *call, struct description *d)
{
	add_hex(&d->words, "graph=", call->args.handle);
	add_stream_word(&d->words, call);
}

static void describe_alloc(const struct call *call, struct description *d)
{
	struct buf *out = &d->words;

	add_bytes(out, "size=", call->args.bytes);
	add_options(out, call);
	add_stream_word(out, call);
	if (call->args.address && !(call->flags & CALL_FAILED))
		add_hex(out, "-> ", call->args.address);
}

static void describe_free(const struct call *call, struct description *d)
{
	bool handle = api_memory(call->function->api) == MEMORY_VMM;

	add_hex(&d->words, handle ? "handle=" : "ptr=", call->args.address);
	add_stream_word(&d->words, call);
}

static void add_size(struct buf *out, const struct call *call)
{
	if (call->flags & CALL_SIZE_UNKNOWN)
		add_word(out, "size unknown");
	else
		add_bytes(out, "", call->args.bytes);
}

static void describe_copy(const struct call *call, struct description *d)
{
	if (call->args.direction != DIRECTION_NONE)
		add_word(&d->words, api_direction_name(call->args.direction));
	add_size(&d->words, call);
	add_async(&d->words, call);
}

static void describe_set(const struct call *call, struct description *d)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);

	add_size(&d->words, call);
	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_HEX || args[i].type == T_INT || args[i].type == T_UINT)
			add_named(&d->words, call, args, i);
	}
	add_hex(&d->words, "ptr=", call->args.address);
	add_async(&d->words, call);
}

/* Everything else: inputs in their order, then what came out. */
static void describe_args(const struct call *call, struct description *d)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);
	bool arrow = false;

	for (size_t i = 0; i < n; i++) {
		if (!args[i].out)
			add_named(&d->words, call, args, i);
	}
	for (size_t i = 0; i < n && call_has_output(call); i++) {
		if (!args[i].out)
			continue;
		if (!arrow)
			add_word(&d->words, "->");
		arrow = true;
		add_named(&d->words, call, args, i);
	}
}

static void (*const forms[OP_COUNT])(const struct call *call, struct description *d) = {
	[OP_LAUNCH] = describe_launch, [OP_GRAPH_LAUNCH] = describe_graph_launch,
	[OP_ALLOC] = describe_alloc,   [OP_FREE] = describe_free,
	[OP_COPY] = describe_copy,     [OP_SET] = describe_set,
};

static void description_reset(struct description *d)
{
	buf_reset(&d->subject);
	buf_reset(&d->words);
	buf_reset(&d->result);
}

void describe(const struct call *call, struct description *d)
{
	description_reset(d);
	if (call->function->api)
		(forms[call->op] ? forms[call->op] : describe_args)(call, d);
	if (call->flags & CALL_CAPTURED)
		add_word(&d->words, "[captured]");
	if (call_has_end(call) && call->result) {
		buf_puts(&d->result, "= ");
		add_result(&d->result, call);
	}
}

void description_free(struct description *d)
{
	buf_free(&d->subject);
	buf_free(&d->words);
	buf_free(&d->result);
}

void describe_call(const struct call *call, struct buf *out)
{
	AT_END(description_free) struct description d = { 0 };
	const struct buf *parts[] = { &d.subject, &d.words, &d.result };
	bool any = false;

	describe(call, &d);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i]->len)
			continue;
		buf_puts(out, any ? " " : "");
		buf_add(out, parts[i]->data, parts[i]->len);
		any = true;
	}
}

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_COUNT] = {
		[FRAME_NATIVE] = "native",
		[FRAME_PYTHON] = "python",
		[FRAME_JIT] = "jit",
		[FRAME_CUDA] = "cuda",
		[FRAME_KERNEL_MODE] = "kernel",
		[FRAME_DRIVER] = "driver",
		[FRAME_GPU] = "gpu",
	};

	return names[kind];
}

void frame_add_words(const struct stack_frame *frame, struct buf *out)
{
	if (frame->function && *frame->function)
		buf_puts(out, frame->function);
	else if (!frame->module || !*frame->module)
		buf_puts(out, "[unknown]");
	else if (*frame->module == '[')
		buf_puts(out, frame->module);
	else
		buf_printf(out, "[%s]", frame->module);
}
