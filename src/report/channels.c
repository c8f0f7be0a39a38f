// SPDX-License-Identifier: MIT
/* The report `channels`: which process holds which channels of a GPU, and how they are set. */
#include "analysis/channels.h"
#include "base/array.h"
#include "nvidia/devices.h"
#include "report/reports.h"

#define AT(member) TABLE_AT(struct channel_row, member)

static const struct table_column columns[] = {
	{ "Begin", TABLE_TIME, AT(begin_ns) },
	{ "End", TABLE_TIME },
	{ "By", TABLE_WORDS },
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct channel_row, process, pid) },
	{ "Kind", TABLE_WORDS },
	{ "Handle", TABLE_FIGURE },
	{ "In", TABLE_FIGURE },
	{ "Engine", TABLE_WORDS },
	{ "Channel", TABLE_NUMBER },
	{ "Token", TABLE_FIGURE },
	{ "Time Slice", TABLE_DURATION },
	{ "Preemption", TABLE_WORDS },
	{ "Level", TABLE_WORDS },
	{ "Class", TABLE_TEXT },
};

static const char *const kinds[CHANNEL_KINDS] = {
	[CHANNEL_GROUP] = "group", [CHANNEL_CONTEXT] = "context", [CHANNEL_CHANNEL] = "channel"
};

static void write_hex(struct table *table, bool known, uint32_t number, struct buf *text)
{
	buf_reset(text);
	buf_hex(text, number);
	table_text(table, known ? text->data : NULL);
}

static void add_name(struct buf *out, const char *const *names, size_t n, uint32_t number)
{
	if (number < n)
		buf_puts(out, names[number]);
	else
		buf_u64(out, number);
}

/* "CILP", "CTA, graphics GFXP"; NULL where nobody set it. */
static const char *preemption(const struct channel_row *row, struct buf *text)
{
	static const char *const compute[] = { "WFI", "CTA", "CILP" };
	static const char *const graphics[] = { "WFI", "GFXP", "GFXP pool" };

	buf_reset(text);
	if (row->knows_compute)
		add_name(text, compute, ARRAY_SIZE(compute), row->compute);
	if (row->knows_graphics) {
		buf_puts(text, row->knows_compute ? ", graphics " : "graphics ");
		add_name(text, graphics, ARRAY_SIZE(graphics), row->graphics);
	}
	return text->len ? text->data : NULL;
}

static const char *level(const struct channel_row *row, struct buf *text)
{
	static const char *const levels[] = { "low", "medium", "high" };

	buf_reset(text);
	add_name(text, levels, ARRAY_SIZE(levels), row->level);
	return row->knows_level ? text->data : NULL;
}

/* What a process says is no duration that can be told in 64 bits of nanoseconds. */
static uint64_t slice_ns(const struct channel_row *row)
{
	return row->timeslice_us < UINT64_MAX / 1000 ? row->timeslice_us * 1000 : UINT64_MAX - 1;
}

static void write_row(struct report_writer *writer, const struct channel_row *row, struct buf *text)
{
	static const char *const ends[] = { [CHANNEL_FREED] = "free", [CHANNEL_EXITED] = "exit" };
	struct table *table = writer->table;
	char engine[NVIDIA_ENGINE_NAME];

	table_fields(table, row);
	if (row->end)
		report_time(writer, row->end_ns);
	else
		table_unknown(table);
	table_text(table, row->end ? ends[row->end] : NULL);
	table_fields(table, row);
	table_text(table, kinds[row->kind]);
	write_hex(table, true, row->handle, text);
	write_hex(table, true, row->parent, text);
	TABLE_CELLS(table, row->engine ? nvidia_engine_name(row->engine, engine) : NULL,
	            TABLE_IF(row->knows_id, row->id));
	write_hex(table, row->knows_token, row->token, text);
	TABLE_LAST(table, TABLE_IF(row->knows_timeslice, slice_ns(row)), preemption(row, text),
	           level(row, text), row->class_name);
}

static void write_notes(struct table *table, size_t n, const struct channels_left_out *left_out)
{
	table_note_if(table, !n,
	              "no channels were made while it was recorded: 'cuscope record --kernel' has "
	              "those of programs that begin meanwhile");
	table_note_if(table, left_out->unknown,
	              "calls about channels whose making was not recorded: %lu", left_out->unknown);
	table_note_if(table, left_out->no_room, "%lu more had no room", left_out->no_room);
}

static void write_channels(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	struct channels_left_out left_out;
	struct buf text = { 0 };
	size_t n;
	const struct channel_row *rows = channels_rows(writer->analysis, &n, &left_out);

	for (size_t i = 0; i < n; i++)
		write_row(writer, &rows[i], &text);
	buf_free(&text);
	write_notes(table, n, &left_out);
}

const struct report_kind channels_report = {
	.analysis = channels_new,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), write_channels } },
};
