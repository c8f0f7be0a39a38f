// SPDX-License-Identifier: MIT
/* Stacks that rows have, and the processes that they are of: known at the end. */
#include "page/rows.h"

#include "analysis/by_id.h"
#include "base/text.h"
#include "page/pack.h"

#define NO_STACKS 1024 /* stacks and frames of a block */

static void frame_add(struct page_rows *rows, struct buf *out, const struct stack_frame *frame)
{
	*BY_ID(rows->frames, rows->n_frames, frame->id) = frame;
	page_varint(out, frame->id);
}

/* A frame that stands for functions that were inlined is those, the innermost first. */
static void stack_add(struct page_rows *rows, struct buf *out, const struct stack *stack)
{
	AT_END(buf_free) struct buf frames = { 0 };
	size_t n = 0;

	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];
		bool whole = !frame->n_parts || n >= STACK_PARTED_DEPTH;

		for (size_t k = 0; k < (whole ? 1 : frame->n_parts); k++, n++)
			frame_add(rows, &frames, whole ? frame : frame->parts[k]);
	}
	page_varint(out, n);
	if (frames.len)
		buf_add(out, frames.data, frames.len);
}

static void rows_add_words(struct buf *out, const char *text)
{
	AT_END(buf_free) struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	page_varint(out, safe.len);
	buf_add(out, safe.data, safe.len);
}

static void frame_pack(struct buf *out, const struct stack_frame *frame)
{
	AT_END(buf_free) struct buf name = { 0 }, where = { 0 };

	buf_puts(&name, "");
	buf_puts(&where, "");
	if (frame) {
		frame_add_words(frame, &name);
		if (frame->file && frame->line)
			buf_printf(&where, "%s:%u", frame->file, frame->line);
		else if (frame->file || frame->module)
			buf_puts(&where, frame->file ? frame->file : frame->module);
	}
	page_varint(out, frame ? frame->kind : 0);
	rows_add_words(out, name.data);
	rows_add_words(out, where.data);
}

static void rows_tell_block(struct page_rows *rows, struct buf *told, const struct buf *bytes,
                            size_t first, size_t n)
{
	struct json json = { .out = told, .depth = 1, .comma = told->len > 0 };

	json_open(&json, NULL, '{');
	json_u64(&json, "block", page_block_add(rows->blocks, bytes));
	json_u64(&json, "first", first);
	json_u64(&json, "n", n);
	json_close(&json, '}');
}

void page_rows_end(struct page_rows *rows)
{
	AT_END(buf_free) struct buf bytes = { 0 };

	for (size_t first = 0; first < rows->n_stacks; first += NO_STACKS) {
		size_t n = rows->n_stacks - first < NO_STACKS ? rows->n_stacks - first : NO_STACKS;

		buf_reset(&bytes);
		page_varint(&bytes, n);
		for (size_t i = first; i < first + n; i++)
			stack_add(rows, &bytes, rows->stacks[i]);
		rows_tell_block(rows, &rows->stack_blocks, &bytes, first, n);
	}
	for (size_t first = 0; first < rows->n_frames; first += NO_STACKS) {
		size_t n = rows->n_frames - first < NO_STACKS ? rows->n_frames - first : NO_STACKS;

		buf_reset(&bytes);
		page_varint(&bytes, n);
		for (size_t i = first; i < first + n; i++)
			frame_pack(&bytes, rows->frames[i]);
		rows_tell_block(rows, &rows->frame_blocks, &bytes, first, n);
	}
}

/* "train.py (4242), rank 3": as it is known in the end. */
static void process_title(const struct page_process *process, const struct run_identity *identity,
                          struct buf *out)
{
	const char *command = identity ? identity->words[RUN_IDENTITY_COMMAND] : NULL;

	text_add_safe(out, command ? command : process->comm);
	buf_printf(out, " (%u)", process->pid);
	if (identity && identity->words[RUN_IDENTITY_RANK]) {
		buf_puts(out, ", ");
		who_label(identity, RUN_IDENTITY_RANK, out);
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
	}
}

static void process_json(const struct page_process *process, const struct run_info *run,
                         struct json *json)
{
	const struct run_identity *identity =
		process->met ? run_identity_of(run, process->pid, process->begin_ns) : NULL;
	AT_END(buf_free) struct buf title = { 0 };

	buf_puts(&title, "");
	process_title(process, identity, &title);
	json_open(json, NULL, '{');
	json_u64(json, "pid", process->pid);
	json_string(json, "title", title.data);
	if (identity && identity->words[RUN_IDENTITY_RANK])
		json_string(json, "rank", identity->words[RUN_IDENTITY_RANK]);
	else
		json_null(json, "rank");
	json_close(json, '}');
}

static void rows_json_list(struct json *json, const char *key, const struct buf *elements)
{
	json_open(json, key, '[');
	if (elements->len)
		buf_add(json->out, elements->data, elements->len);
	json_close(json, ']');
}

void page_rows_json(const struct page_rows *rows, const struct run_info *run, struct json *json)
{
	size_t n = rows->n_processes;

	while (n && !rows->processes[n - 1].met)
		n--;
	json_open(json, "processes", '[');
	for (size_t i = 0; i < n; i++)
		process_json(&rows->processes[i], run, json);
	json_close(json, ']');
	rows_json_list(json, "stacks", &rows->stack_blocks);
	rows_json_list(json, "frames", &rows->frame_blocks);
}
