// SPDX-License-Identifier: MIT
/* What ran on the GPU, and ranges, in the words of the table. */
#include "base/text.h"
#include "output/activity.h"
#include "output/args.h"
#include "output/describe.h"

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

void describe_activity(const struct activity *a, const struct delay *delay, struct description *d)
{
	description_reset(d);
	if (a->kind == ACTIVITY_KERNEL)
		describe_kernel(a, d);
	else if (a->kind == ACTIVITY_COPY || a->kind == ACTIVITY_SET)
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
