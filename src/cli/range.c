// SPDX-License-Identifier: MIT
/* What the commands that read trace files share: which part of them, and what to say of them. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account/facts.h"
#include "analysis/missed.h"
#include "base/buf.h"
#include "base/lines.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/vec.h"
#include "trace/chunk.h"

/* ---- parse --------------------------------------------------------------------------------- */

/* What commands say on standard error and output. */

__attribute__((format(printf, 2, 0))) static void cli_print_safe(FILE *out, const char *fmt,
                                                                 va_list ap)
{
	AT_END(buf_free) struct buf text = { 0 }, safe = { 0 };

	buf_vprintf(&text, fmt, ap);
	text_add_safe(&safe, text.data ? text.data : "");
	if (safe.len)
		fwrite(safe.data, 1, safe.len, out);
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	fputs("cuscope: ", stderr);
	va_start(ap, fmt);
	cli_print_safe(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void cli_notice(void *data, const char *text)
{
	cli_say("%s", text);
}

void cli_print_line(const char *fmt, ...)
{
	AT_END(buf_free) struct buf text = { 0 }, safe = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	text_add_safe(&safe, text.data);
	text_wrap_lines(&safe, 0, cli_width(stdout));
	puts(safe.data);
}

/* ---- range --------------------------------------------------------------------------------- */

#define FROM_ROW                                                                                   \
	{                                                                                          \
		"from", 0, "TIME", "what ended later than this after the trace's begin (10ms)",    \
			OPTION_TIME, offsetof(struct cli_range, from_ns),                          \
			OPTION_WITH(struct cli_range, has_from), .most = OPTION_ANY,               \
								 .is_no = A_TIME                   \
	}
#define TO_ROW                                                                                     \
	{                                                                                          \
		"to", 0, "TIME", "what ended earlier (1.5s)", OPTION_TIME,                         \
			offsetof(struct cli_range, to_ns), OPTION_WITH(struct cli_range, has_to),  \
			.most = OPTION_ANY, .is_no = A_TIME                                        \
	}
#define A_TIME "time since the trace's begin (10us, 1.5ms, 2s)"
#define SIZE_TITLE                                                                                 \
	{                                                                                          \
		.title = "How much is written:", .order = 9                                        \
	}
#define MAX_SIZE_ROW                                                                               \
	{                                                                                          \
		"max-size", 0, "SIZE",                                                             \
			"each output has this size at most, 0: any (default: 1G; of a trace file " \
			"1000 times its size, and 64M)",                                           \
			OPTION_BYTES, offsetof(struct cli_range, max_size),                        \
			OPTION_WITH(struct cli_range, has_max_size),                               \
			.most = OPTION_ANY, .is_no = "size (100M, 2GiB; 0: any)"                   \
	}

static void range_end(const struct argp_state *state, void *into)
{
	struct cli_range *range = into;

	if (range->has_to && range->to_ns <= range->from_ns)
		option_bad_usage(state, "--to is not later than --from");
}

static const struct option_row times_rows[] = { { .title = "Which part of a trace file:",
	                                          .order = 2 },
	                                        FROM_ROW,
	                                        TO_ROW,
	                                        SIZE_TITLE,
	                                        MAX_SIZE_ROW };

const struct option_group cli_times_options = { OPTION_ROWS(times_rows), .end = range_end };

static bool range_take_pids(const struct argp_state *state, void *to, const char *value)
{
	struct cli_range *range = to;

	return parse_pids(value, &range->pids, &range->n_pids);
}

static const struct option_row range_rows[] = {
	{ .title = "Which part of the trace:", .order = 1 },
	FROM_ROW,
	TO_ROW,
	{ "pid", 'p', "PID[,PID]", "what these processes did; may be repeated", OPTION_TAKE,
	  .take = range_take_pids, .is_no = "list of process ids (123 or 123,456)",
	  .offer = completion_pids, .list = true },
	{ "function", 0, "GLOB", "only calls of these functions ('cuMemcpy*')", OPTION_TEXT,
	  offsetof(struct cli_range, filter.function), .is_no = "pattern ('cuMemcpy*')",
	  .offer = completion_functions },
	{ "kernel", 0, "GLOB",
	  "only these kernels and their launches ('gemm*'), by full, short or mangled name",
	  OPTION_TEXT, offsetof(struct cli_range, filter.kernel), .is_no = "pattern ('gemm*')" },
	SIZE_TITLE,
	MAX_SIZE_ROW,
};

const struct option_group cli_range_options = { OPTION_ROWS(range_rows), .end = range_end };

static const struct option_row calls_rows[] = {
	{ "rank", 0, "N", "what processes of this rank did, as they said when they were recorded",
	  OPTION_TEXT, offsetof(struct cli_range, rank), .order = 1 },
	{ "failed", 0, NULL, "only calls that returned an error", OPTION_YES,
	  offsetof(struct cli_range, filter.failed), .order = 1 },
	{ "max-events", 0, "N",
	  "only the first N calls with those that they made, and what ran on the GPU until then",
	  OPTION_NUMBER, offsetof(struct cli_range, filter.max_calls), .least = 1,
	  .most = OPTION_ANY },
};

const struct option_group cli_calls_options = { OPTION_ROWS(calls_rows) };

bool cli_is_chosen(const struct cli_range *range)
{
	return range->n_pids || range->rank || filter_is_any(&range->filter);
}

bool cli_is_part(const struct cli_range *range)
{
	return range->from_ns || range->has_to || cli_is_chosen(range);
}

static const char *rank_of(const struct run_info *run, size_t i)
{
	const char *rank = run->identities[i].words[RUN_IDENTITY_RANK];

	return rank ? rank : "";
}

bool cli_has_rank_of_several(const struct run_info *run, const char *rank)
{
	bool this_one = false, other = false;

	for (size_t i = 0; i < run->n_identities; i++) {
		this_one |= !strcmp(rank_of(run, i), rank);
		other |= *rank_of(run, i) && strcmp(rank_of(run, i), rank) != 0;
	}
	return this_one && other;
}

#define RANKS_NAMED 8

static int say_no_rank(const struct run_info *run, const char *rank, struct err *err)
{
	AT_END(buf_free) struct buf has = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < run->n_identities && n < RANKS_NAMED; i++)
		if (*rank_of(run, i))
			buf_printf(&has, "%s%s", n++ ? ", " : "", rank_of(run, i));
	if (n == RANKS_NAMED)
		buf_puts(&has, " and more");
	return err_set(err, ESRCH,
	               n ? "no process that was recorded is of rank %s: there are %s"
	                 : "no process that was recorded is of rank %s: none said what it is",
	               rank, has.data);
}

/* Of a rank's processes those that are asked for, where pids are as well. */
static int range_find_rank(const struct run_info *run, const struct cli_range *range,
                           struct trace_read_options *read, struct err *err)
{
	uint32_t *pids = NULL;
	size_t n = 0;

	for (size_t i = 0; i < run->n_identities; i++) {
		bool wanted = !range->n_pids;

		for (size_t k = 0; k < range->n_pids; k++)
			wanted |= (uint32_t)range->pids[k] == run->identities[i].pid;
		if (!wanted || strcmp(rank_of(run, i), range->rank) != 0)
			continue;
		pids = vec_room(pids, n, sizeof(*pids));
		pids[n++] = run->identities[i].pid;
	}
	read->pids = pids;
	read->n_pids = n;
	if (!n && range->n_pids)
		return err_set(err, ESRCH, "no process of --pid is of rank %s", range->rank);
	return n ? 0 : say_no_rank(run, range->rank, err);
}

int cli_range_begin(const struct trace_file *file, const struct cli_range *range,
                    struct trace_read_options *read, struct err *err)
{
	uint64_t begin_ns = trace_run(file)->begin_ns;

	*read = (struct trace_read_options){
		.from_ns = range->from_ns ? begin_ns + range->from_ns : 0,
		.to_ns = range->has_to ? begin_ns + range->to_ns : 0,
		.cut = range->cut,
		.pids = (const uint32_t *)range->pids, /* never negative */
		.n_pids = range->n_pids,
	};
	if (filter_is_any(&range->filter))
		read->filter = filter_new(&range->filter);
	return range->rank ? range_find_rank(trace_run(file), range, read, err) : 0;
}

void cli_range_end(const struct cli_range *range, struct trace_read_options *read)
{
	filter_free(read->filter);
	if (range->rank)
		free((void *)read->pids);
}

int cli_read(struct trace_file *file, const struct cli_range *range,
             struct consumer *const *consumers, size_t n, struct err *err)
{
	struct trace_read_options options;
	int rc = cli_range_begin(file, range, &options, err);

	if (!rc)
		rc = trace_read(file, &options, consumers, n, err);
	cli_range_end(range, &options);
	return rc;
}

int cli_say_missed(const char *path, const struct run_info *run, struct err *err)
{
	struct buf brief = { 0 };

	if (missed_brief(&brief, run))
		cli_say("%s: %s while it was recorded: 'cuscope report %s summary' says why", path,
		        brief.data, path);
	buf_free(&brief);
	if (!run->cut_short)
		return 0;
	return err_set(err, ENODATA,
	               "%s has no end, the recording was cut short: this is of what came before",
	               path);
}

/*
 * A call takes 3 to 10 bytes in a file, and some hundred in most outputs; of names of a kilobyte as
 * much as these. What is larger is mostly zeros.
 */
#define SIZE_TIMES 1000
#define SIZE_LEAST (64ull << 20)
#define SIZE_LIVE  (1ull << 30)

/* False: it is none that can be asked. */
static bool data_bytes_of(const char *input, uint64_t *bytes)
{
	int fd = input ? open(input, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat st;
	bool known;

	if (fd < 0)
		return false;
	known = !fstat(fd, &st);
	if (known)
		*bytes = file_data_bytes(fd, (uint64_t)st.st_size);
	close(fd);
	return known;
}

void cli_bound_outputs(const struct cli_range *range, const char *const *inputs, size_t n)
{
	uint64_t bound = 0, all = 0, bytes;

	for (size_t i = 0; i < n; i++) {
		if (!data_bytes_of(inputs[i], &bytes)) {
			bound += SIZE_LIVE;
			continue;
		}
		bound += SIZE_LEAST + SIZE_TIMES * bytes;
		all += bytes;
	}
	lines_bound(range->has_max_size ? range->max_size : bound,
	            "--max-size SIZE allows more, and --max-size 0 anything");
	facts_expect(all);
}

void cli_bound_output(const struct cli_range *range, const char *input)
{
	cli_bound_outputs(range, &input, 1);
}

bool cli_is_full(int rc)
{
	return rc == -EOVERFLOW;
}

void cli_print_incomplete(const struct run_info *run)
{
	AT_END(buf_free) struct buf why = { 0 };

	if (missed_of_file(run, &why))
		printf("\nnot all: %s\n", why.data);
	fflush(stdout);
}

bool cli_worth_showing(int rc)
{
	return !rc || rc == -EBADMSG;
}

void cli_say_failure(const struct err *err)
{
	if (err->code != -EPIPE)
		cli_say("%s", err->text);
}

void cli_range_times(const struct cli_range *range, const struct run_info *run, uint64_t *begin_ns,
                     uint64_t *duration_ns)
{
	uint64_t whole_ns = run->end_ns - run->begin_ns, from_ns = range->from_ns;
	uint64_t to_ns = range->has_to && range->to_ns < whole_ns ? range->to_ns : whole_ns;

	if (from_ns > to_ns)
		from_ns = to_ns;
	*begin_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns + from_ns;
	*duration_ns = to_ns - from_ns;
}
