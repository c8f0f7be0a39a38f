// SPDX-License-Identifier: MIT
#include "top/top_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "base/xalloc.h"

/* ---- numbers as text ----------------------------------------------------------------------- */

static void add_digits(struct buf *out, double n, const char *unit)
{
	buf_printf(out, n < 9.995 ? "%.2f%s" : n < 99.95 ? "%.1f%s" : "%.0f%s", n, unit);
}

void top_add_count(struct buf *out, double n)
{
	static const char *const units[] = { "k", "M", "G", "T" };
	size_t i = 0;

	if (n < 99999.5) {
		buf_printf(out, n > 0 && n < 9.95 && n != (double)number_u64(n) ? "%.1f" : "%.0f",
		           n);
		return;
	}
	for (n /= 1000; n >= 999.5 && i < 3; i++)
		n /= 1000;
	add_digits(out, n, units[i]);
}

void top_add_bytes(struct buf *out, double bytes)
{
	static const char *const units[] = { "K", "M", "G", "T", "P", "E" };
	size_t i = 0;

	if (bytes < 999.5) {
		buf_printf(out, "%.0f", bytes);
		return;
	}
	for (bytes /= 1024; bytes >= 999.5 && i < 5; i++)
		bytes /= 1024;
	add_digits(out, bytes, units[i]);
}

void top_add_time(struct buf *out, double ns)
{
	static const char *const units[] = { "us", "ms", "s" };
	size_t i = 0;

	if (ns < 999.5) {
		buf_printf(out, "%.0fns", ns);
		return;
	}
	for (ns /= 1000; ns >= 999.5 && i < 2; i++)
		ns /= 1000;
	if (ns < 99999.5)
		add_digits(out, ns, units[i]);
	else
		add_digits(out, ns / 3600, "h");
}

/* ---- values -------------------------------------------------------------------------------- */

static double process_pid(const struct top_page *page, const struct top_row *row)
{
	return row->process->process ? row->process->process->pid : TOP_UNKNOWN;
}

/* Without results nothing is known to have failed. */
static double process_errors(const struct top_page *page, const struct top_row *row)
{
	return row->process->entries_only ? TOP_UNKNOWN
	                                  : (double)row->process->numbers[TOP_COUNT_ERRORS].total;
}

static double process_live(const struct top_page *page, const struct top_row *row)
{
	return row->process->entries_only ? TOP_UNKNOWN
	                                  : (double)row->process->memory[MEMORY_NONE].bytes;
}

static double process_peak(const struct top_page *page, const struct top_row *row)
{
	return row->process->entries_only ? TOP_UNKNOWN
	                                  : (double)row->process->memory[MEMORY_NONE].peak_bytes;
}

static double process_sync(const struct top_page *page, const struct top_row *row)
{
	return row->process->entries_only || !row->process->threads ? TOP_UNKNOWN
	                                                            : row->process->sync_share;
}

static double process_gpu(const struct top_page *page, const struct top_row *row)
{
	if (!page->gpus || !row->process->process || row->process->ended)
		return TOP_UNKNOWN;
	return (double)gpus_process_bytes(page->gpus, row->process->process->pid);
}

static double kernel_share(const struct top_page *page, const struct top_row *row)
{
	const struct top_item *kernel = row->item;
	uint64_t all = row->process->numbers[TOP_COUNT_LAUNCHES].total;

	return all ? (double)kernel->calls.total / (double)all : TOP_UNKNOWN;
}

static double kernel_gpu_time(const struct top_page *page, const struct top_row *row)
{
	const struct top_item *kernel = row->item;

	return kernel->gpu_runs ? (double)kernel->gpu_ns : TOP_UNKNOWN;
}

static double kernel_gpu_average(const struct top_page *page, const struct top_row *row)
{
	const struct top_item *kernel = row->item;

	return kernel->gpu_runs ? (double)kernel->gpu_ns / (double)kernel->gpu_runs : TOP_UNKNOWN;
}

static const struct top_count *transfer(const struct top_row *row, unsigned first)
{
	return &row->process->numbers[first + row->index];
}

static double transfer_copies(const struct top_page *page, const struct top_row *row)
{
	return (double)transfer(row, TOP_COUNT_COPIES)->total;
}

static double transfer_copies_rate(const struct top_page *page, const struct top_row *row)
{
	return transfer(row, TOP_COUNT_COPIES)->rate;
}

static double transfer_bytes(const struct top_page *page, const struct top_row *row)
{
	return (double)transfer(row, TOP_COUNT_COPY_BYTES)->total;
}

static double transfer_bytes_rate(const struct top_page *page, const struct top_row *row)
{
	return transfer(row, TOP_COUNT_COPY_BYTES)->rate;
}

static double value_of(const struct top_column *column, const struct top_page *page,
                       const struct top_row *row)
{
	const struct table_column place = { .field = column->field,
		                            .offset = column->offset,
		                            .via = column->via };
	double value =
		column->value ? column->value(page, row) : table_number_at(&place, row->item);

	return isnan(value) ? TOP_UNKNOWN : value;
}

const char *top_who(const struct top_page *page, const struct top_process *process,
                    enum run_identity_word word)
{
	const struct run_identity *who = NULL;

	if (page->who && process->process) /* a sum is nobody's */
		who = run_identity_of(page->who, process->process->pid, UINT64_MAX);
	return who ? who->words[word] : NULL;
}

/* ---- texts --------------------------------------------------------------------------------- */

/* "train.py #3" of python3, which many are: an interpreter's script, and the rank in its job. */
static void process_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	const char *command = top_who(page, row->process, RUN_IDENTITY_COMMAND);
	const char *rank = top_who(page, row->process, RUN_IDENTITY_RANK);
	const char *comm = row->process->process->comm;
	size_t bytes = strlen(comm);
	const char *script = command && !strncmp(command, comm, bytes) && command[bytes] == ' '
	                             ? command + bytes + 1
	                             : NULL;
	const char *slash = script ? strrchr(script, '/') : NULL;

	text_add_safe(out, slash ? slash + 1 : script ? script : comm);
	if (rank) {
		buf_puts(out, " #");
		text_add_safe(out, rank);
	}
	if (row->process->ended)
		buf_puts(out, " (ended)");
}

/* What is not known is "-". */
static void add_word(const struct top_page *page, const struct top_row *row,
                     enum run_identity_word word, struct buf *out)
{
	const char *text = top_who(page, row->process, word);

	text_add_safe(out, text ? text : "-");
}

static void process_user(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	add_word(page, row, RUN_IDENTITY_USER, out);
}

static void process_job(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	add_word(page, row, RUN_IDENTITY_JOB, out);
}

static void process_rank(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	add_word(page, row, RUN_IDENTITY_RANK, out);
}

/* The pod's name, or that of a container without one. */
static void process_pod(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	bool pod = top_who(page, row->process, RUN_IDENTITY_POD);

	add_word(page, row, pod ? RUN_IDENTITY_POD : RUN_IDENTITY_CONTAINER, out);
}

/* In a table of all processes. */
static void owner_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	if (row->process->process)
		process_name(page, row, out);
	else
		buf_puts(out, "(gone)");
}

static void item_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	text_add_safe(out, ((const struct top_item *)row->item)->name);
}

static void kernel_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	text_add_safe(out, ((const struct top_item *)row->item)->kernel->name);
}

static void function_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	item_name(page, row, out);
	if (((const struct top_item *)row->item)->counted)
		buf_puts(out, " +");
}

/* CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are handles 1 and 2. */
static void stream_name(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	static const char *const special[] = { "0 (default)", "1 (legacy)" };
	const struct top_item *stream = row->item;

	if (stream->others)
		buf_puts(out, "(others)");
	else if (stream->stream.handle == STREAM_PER_THREAD)
		buf_printf(out, "of thread %u", (unsigned)stream->stream.tid);
	else if (stream->stream.handle <= STREAM_LEGACY)
		buf_puts(out, special[stream->stream.handle]);
	else
		buf_hex(out, stream->stream.handle);
}

static void memory_kind(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	buf_puts(out, row->index == MEMORY_NONE ? "all" : api_memory_name(row->index));
	if (row->index == MEMORY_VMM_VA)
		buf_puts(out, " (addresses only)");
}

static void direction(const struct top_page *page, const struct top_row *row, struct buf *out)
{
	buf_puts(out, row->index == DIRECTION_NONE ? "not known" : api_direction_name(row->index));
}

/* ---- tables -------------------------------------------------------------------------------- */

#define WHO_FROM 150
#define POD_FROM 180

#define OF_PROCESS(number, member) TABLE_AT(struct top_process, numbers[number].member)
#define OF_ITEM(member)            TABLE_AT(struct top_item, member)

static const struct top_column process_columns[] = {
	{ "PID", 'd', 0, 7, TOP_NUMBER, .value = process_pid },
	{ "NAME", 'n', 0, 0, TOP_TEXT, .text = process_name },
	{ "THR", 't', 100, 4, TOP_COUNT, TABLE_AT(struct top_process, threads) },
	{ "CALLS", 0, 120, 8, TOP_COUNT, OF_PROCESS(TOP_COUNT_CALLS, total) },
	{ "CALLS/s", 'c', 0, 7, TOP_COUNT, OF_PROCESS(TOP_COUNT_CALLS, rate) },
	{ "LAUNCHES", 0, 120, 8, TOP_COUNT, OF_PROCESS(TOP_COUNT_LAUNCHES, total) },
	{ "LAUNCH/s", 'l', 0, 8, TOP_COUNT, OF_PROCESS(TOP_COUNT_LAUNCHES, rate) },
	{ "GRAPH/s", 0, 120, 7, TOP_COUNT, OF_PROCESS(TOP_COUNT_GRAPH_LAUNCHES, rate) },
	{ "MEMORY", 'm', 0, 6, TOP_BYTES, .value = process_live },
	{ "PEAK", 'x', 0, 5, TOP_BYTES, .value = process_peak },
	{ "GPUMEM", 'g', 100, 6, TOP_BYTES, .value = process_gpu },
	{ "H2D/s", 'i', 0, 5, TOP_BYTES, OF_PROCESS(TOP_COUNT_COPY_BYTES + DIRECTION_H2D, rate) },
	{ "D2H/s", 'o', 0, 5, TOP_BYTES, OF_PROCESS(TOP_COUNT_COPY_BYTES + DIRECTION_D2H, rate) },
	{ "ERRORS", 'e', 0, 6, TOP_COUNT, .value = process_errors },
	{ "SYNC", 's', 0, 4, TOP_SHARE, .value = process_sync },
	{ "GPU", 'b', TOP_WITH_GPU, 4, TOP_SHARE, TABLE_AT(struct top_process, gpu_share) },
	{ "USER", 0, WHO_FROM, 10, TOP_TEXT, .text = process_user },
	{ "JOB", 0, WHO_FROM, 8, TOP_TEXT, .text = process_job },
	{ "RANK", 0, WHO_FROM, 4, TOP_TEXT, .text = process_rank },
	{ "POD", 0, POD_FROM, 24, TOP_TEXT, .text = process_pod },
};

static const struct top_column kernel_columns[] = {
	{ "KERNEL", 'n', 0, 0, TOP_NAME, .text = kernel_name },
	{ "LAUNCHES", 'l', 0, 9, TOP_COUNT, OF_ITEM(calls.total) },
	{ "LAUNCH/s", 's', 0, 8, TOP_COUNT, OF_ITEM(calls.rate) },
	{ "SHARE", 0, 0, 5, TOP_SHARE, .value = kernel_share },
	{ "GPUTIME", 't', TOP_WITH_GPU, 7, TOP_TIME, .value = kernel_gpu_time },
	{ "AVERAGE", 'a', TOP_WITH_GPU, 7, TOP_TIME, .value = kernel_gpu_average },
};

static const struct top_column function_columns[] = {
	{ "FUNCTION", 'n', 0, 0, TOP_TEXT, .text = function_name },
	{ "CALLS", 'c', 0, 8, TOP_COUNT, OF_ITEM(calls.total) },
	{ "CALLS/s", 's', 0, 7, TOP_COUNT, OF_ITEM(calls.rate) },
	{ "ERRORS", 'e', 0, 6, TOP_COUNT, OF_ITEM(failed) },
	{ "P50", 0, 0, 7, TOP_TIME, OF_ITEM(p50_ns) },
	{ "P99", 0, 0, 7, TOP_TIME, OF_ITEM(p99_ns) },
	{ "TIME", 't', 0, 7, TOP_TIME, OF_ITEM(time_ns) },
};

static const struct top_column stream_columns[] = {
	{ "STREAM", 0, 0, 0, TOP_TEXT, .text = stream_name },
	{ "LAUNCHES", 'l', 0, 9, TOP_COUNT, OF_ITEM(calls.total) },
	{ "LAUNCH/s", 0, 0, 8, TOP_COUNT, OF_ITEM(calls.rate) },
	{ "COPIES", 'c', 0, 8, TOP_COUNT, OF_ITEM(copies.total) },
	{ "COPIES/s", 0, 0, 8, TOP_COUNT, OF_ITEM(copies.rate) },
	{ "BYTES", 'b', 0, 6, TOP_BYTES, OF_ITEM(bytes.total) },
	{ "BYTES/s", 0, 0, 7, TOP_BYTES, OF_ITEM(bytes.rate) },
};

static const struct top_column memory_columns[] = {
	{ "KIND", 0, 0, 0, TOP_TEXT, .text = memory_kind },
	{ "ALLOCATIONS", 0, 0, 11, TOP_COUNT, TABLE_AT(struct top_memory, count) },
	{ "MEMORY", 'm', 0, 8, TOP_BYTES, TABLE_AT(struct top_memory, bytes) },
	{ "PEAK", 'x', 0, 8, TOP_BYTES, TABLE_AT(struct top_memory, peak_bytes) },
};

static const struct top_column transfer_columns[] = {
	{ "DIRECTION", 0, 0, 0, TOP_TEXT, .text = direction },
	{ "COPIES", 'c', 0, 8, TOP_COUNT, .value = transfer_copies },
	{ "COPIES/s", 0, 0, 8, TOP_COUNT, .value = transfer_copies_rate },
	{ "BYTES", 'b', 0, 6, TOP_BYTES, .value = transfer_bytes },
	{ "BYTES/s", 0, 0, 7, TOP_BYTES, .value = transfer_bytes_rate },
};

#define HOOK_COLUMNS                                                                               \
	{ "CALLS", 'c', 0, 8, TOP_COUNT, OF_ITEM(calls.total) },                                   \
		{ "CALLS/s", 's', 0, 7, TOP_COUNT, OF_ITEM(calls.rate) },                          \
		{ "BYTES/s", 'b', 0, 7, TOP_BYTES, OF_ITEM(bytes.rate) },                          \
		{ "BYTES", 0, 100, 7, TOP_BYTES, OF_ITEM(bytes.total) },                           \
		{ "MEAN", 'a', 0, 7, TOP_TIME, OF_ITEM(mean_ns) },                                 \
		{ "MAX", 'x', 0, 7, TOP_TIME, OF_ITEM(max_ns) },                                   \
	{                                                                                          \
		"TIME", 't', 0, 7, TOP_TIME, OF_ITEM(time_ns)                                      \
	}

static const struct top_column hook_columns[] = {
	{ "HOOK", 'n', 0, 0, TOP_TEXT, .text = item_name },
	HOOK_COLUMNS,
};

static const struct top_column all_hook_columns[] = {
	{ "PID", 'd', 0, 7, TOP_NUMBER, .value = process_pid },
	{ "NAME", 0, 100, 15, TOP_TEXT, .text = owner_name },
	{ "HOOK", 'n', 0, 0, TOP_TEXT, .text = item_name },
	HOOK_COLUMNS,
};

const struct top_table_description top_tables[TOP_TABLES] = {
	[TOP_PROCESSES] = { "processes", "no process has called CUDA yet",
	                    TABLE_COLUMNS(process_columns), 4 },
	[TOP_KERNELS] = { "kernels", "no kernel was launched yet", TABLE_COLUMNS(kernel_columns), 1,
	                  TOP_KIND_KERNEL },
	[TOP_FUNCTIONS] = { "functions", "no call yet", TABLE_COLUMNS(function_columns), 6,
	                    TOP_KIND_FUNCTION },
	[TOP_STREAMS] = { "streams", "no launch and no copy yet", TABLE_COLUMNS(stream_columns), 1,
	                  TOP_KIND_STREAM },
	[TOP_MEMORY] = { "memory", "no memory was allocated yet", TABLE_COLUMNS(memory_columns),
	                 2 },
	[TOP_TRANSFERS] = { "transfers", "nothing was copied yet", TABLE_COLUMNS(transfer_columns),
	                    3 },
	[TOP_HOOKS] = { "hooks", "no hook was hit yet", TABLE_COLUMNS(hook_columns), 7,
	                TOP_KIND_HOOK },
	[TOP_ALL_HOOKS] = { "hooks", "no hook was hit yet", TABLE_COLUMNS(all_hook_columns), 9 },
};

bool top_column_shown(const struct top_column *column, size_t columns, bool gpu_times)
{
	if (column->from == TOP_WITH_GPU)
		return gpu_times;
	if (!columns) /* on no screen: json tells who processes are */
		return column->from < WHO_FROM;
	return columns >= column->from;
}

void top_cell(const struct top_column *column, const struct top_page *page,
              const struct top_row *row, size_t width, struct buf *out)
{
	struct buf text = { 0 };
	double value;

	if (column->format == TOP_TEXT || column->format == TOP_NAME) {
		column->text(page, row, &text);
		if (column->format == TOP_NAME && width)
			text_add_name(out, text.data, width);
		else
			text_add_cut(out, text.data, width ? width : text.len);
		buf_free(&text);
		return;
	}
	value = value_of(column, page, row);
	if (value < 0)
		buf_putc(out, '-');
	else if (column->format == TOP_NUMBER)
		buf_u64(out, number_u64(value));
	else if (column->format == TOP_COUNT)
		top_add_count(out, value);
	else if (column->format == TOP_BYTES)
		top_add_bytes(out, value);
	else if (column->format == TOP_SHARE)
		buf_printf(out, "%.0f%%", 100 * value);
	else
		top_add_time(out, value);
}

/* ---- rows ---------------------------------------------------------------------------------- */

const struct top_process *top_opened(const struct top_page *page, const struct top_view *view)
{
	for (size_t i = 0; i < page->snapshot->n_processes; i++) {
		if (page->snapshot->processes[i].process->id == view->process)
			return &page->snapshot->processes[i];
	}
	return NULL;
}

/* Row `i` and its item, NULL for directions; false where there is no such row. */
static bool row_at(const struct top_process *process, enum top_table table, size_t i,
                   struct top_row *row)
{
	const struct top_items *items = &process->items[top_tables[table].kind];

	*row = (struct top_row){ .process = process, .index = (unsigned)i };
	if (table == TOP_TRANSFERS)
		return i < DIRECTION_COUNT;
	if (table == TOP_MEMORY) {
		row->item = &process->memory[i];
		return i < MEMORY_COUNT;
	}
	row->item = i < items->n ? &items->all[i] : NULL; /* there may be none */
	return i < items->n;
}

/* Kinds and directions that were never met are left out. */
static bool is_empty(const struct top_row *row, enum top_table table)
{
	if (table == TOP_MEMORY)
		return !row->process->memory[row->index].peak_bytes;
	if (table == TOP_TRANSFERS)
		return !row->process->numbers[TOP_COUNT_COPIES + row->index].total;
	return false;
}

static size_t detail_rows(const struct top_process *process, enum top_table table,
                          struct top_row *rows)
{
	struct top_row row;
	size_t n = 0;

	for (size_t i = 0; row_at(process, table, i, &row); i++) {
		if (!is_empty(&row, table))
			rows[n++] = row;
	}
	return n;
}

static size_t most_rows(const struct top_process *process)
{
	size_t most = MEMORY_COUNT + DIRECTION_COUNT;

	for (size_t i = 0; i < TOP_KINDS; i++)
		most += process->items[i].n;
	return most;
}

struct sorting {
	const struct top_page *page;
	const struct top_column *column;
	bool backwards;
};

static int compare_texts(const struct sorting *by, const struct top_row *a, const struct top_row *b)
{
	AT_END(buf_free) struct buf x = { 0 }, y = { 0 };
	int order;

	by->column->text(by->page, a, &x);
	by->column->text(by->page, b, &y);
	order = strcmp(x.data, y.data);
	return order;
}

/* Texts and pids rise, numbers fall; equal rows stay in an order of their own. */
static int compare(const void *one, const void *two, void *data)
{
	const struct sorting *s = data;
	const struct top_row *a = one, *b = two;
	int order;

	if (s->column->text) {
		order = compare_texts(s, a, b);
	} else {
		double x = value_of(s->column, s->page, a), y = value_of(s->column, s->page, b);

		order = x < y ? 1 : x > y ? -1 : 0;
		if (s->column->format == TOP_NUMBER)
			order = -order;
	}
	if (order)
		return s->backwards ? -order : order;
	if (a->process != b->process)
		return process_pid(s->page, a) < process_pid(s->page, b) ? -1 : 1;
	if (a->item != b->item)
		return a->item < b->item ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Those of all processes, and of those that are gone. */
static struct top_row *rows_of_hooks(const struct top_snapshot *snapshot, size_t *n)
{
	size_t most = snapshot->gone.items[TOP_KIND_HOOK].n;
	struct top_row *rows;

	for (size_t i = 0; i < snapshot->n_processes; i++)
		most += snapshot->processes[i].items[TOP_KIND_HOOK].n;
	rows = xcalloc(most, sizeof(*rows));
	for (size_t i = 0; i < snapshot->n_processes; i++)
		*n += detail_rows(&snapshot->processes[i], TOP_HOOKS, rows + *n);
	*n += detail_rows(&snapshot->gone, TOP_HOOKS, rows + *n);
	return rows;
}

static struct top_row *rows_of_processes(const struct top_snapshot *snapshot, size_t *n)
{
	struct top_row *rows = xcalloc(snapshot->n_processes, sizeof(*rows));

	for (; *n < snapshot->n_processes; (*n)++)
		rows[*n] = (struct top_row){ .process = &snapshot->processes[*n],
			                     .item = &snapshot->processes[*n] };
	return rows;
}

static struct top_row *rows_of_opened(const struct top_page *page, const struct top_view *view,
                                      size_t *n)
{
	const struct top_process *opened = top_opened(page, view);
	struct top_row *rows = xcalloc(opened ? most_rows(opened) : 1, sizeof(*rows));

	if (opened)
		*n = detail_rows(opened, view->table, rows);
	return rows;
}

struct top_row *top_rows(const struct top_page *page, const struct top_view *view, size_t *n)
{
	const struct top_order *order = &view->order[view->table];
	struct sorting sorting = { page, &top_tables[view->table].columns[order->column],
		                   order->backwards };
	struct top_row *rows;

	*n = 0;
	if (view->table == TOP_PROCESSES)
		rows = rows_of_processes(page->snapshot, n);
	else if (view->table == TOP_ALL_HOOKS)
		rows = rows_of_hooks(page->snapshot, n);
	else
		rows = rows_of_opened(page, view, n);
	if (*n)
		qsort_r(rows, *n, sizeof(*rows), compare, &sorting);
	return rows;
}
