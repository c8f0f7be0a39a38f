/* SPDX-License-Identifier: MIT */
/*
 * What the commands share: the table of commands, options that several of them take, and messages.
 * Only this layer prints and decides exit statuses: 0, 1 for a failure, 2 for wrong usage.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/file.h"
#include "capture/capture.h"
#include "cli/option.h"
#include "hooks/hook_list.h"
#include "probe/selection.h"
#include "table/table.h"
#include "trace/filter.h"
#include "trace/reader.h"

#define EXIT_USAGE 2

struct cli_command {
	const char *name;
	const char *help;                   /* one line */
	int (*main)(int argc, char **argv); /* argv[0] is "cuscope NAME" */
};

extern const struct cli_command cli_commands[]; /* ends with a NULL name */

int cli_why(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_account(int argc, char **argv); /* no command: node/account.h */
int cli_record(int argc, char **argv);
int cli_profile(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_timeline(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_memleak(int argc, char **argv);
int cli_launches(int argc, char **argv);
int cli_bandwidth(int argc, char **argv);
int cli_watch(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_probes(int argc, char **argv);
int cli_doctor(int argc, char **argv);

/*
 * A line: "cuscope: ..." on stderr, or as it is on standard output. What a terminal could obey is
 * made harmless, ends of lines too: a path, a name or a reason in it may be a target's choice.
 */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_notice(void *data, const char *text); /* the same, for struct capture_options */
void cli_print_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A pipe that is closed (SIGPIPE) and a file that may not grow (SIGXFSZ) are errors of writing,
 * told like others. After origin_save(), where a command is started.
 */
void cli_ignore_signals(void);

/* Says why a command cannot be as it was typed, as argp would; what main() returns then. */
int cli_refuse(const char *program, const struct err *err);

/* Whether to colour what is written: `when` is always, never, auto or NULL. */
bool cli_color(const char *when, FILE *out);

/* Columns of the terminal that it is; else those that COLUMNS asks for, 0: any. */
size_t cli_width(FILE *out);

/* ---- parsing ------------------------------------------------------------------------------- */

/* -p, --name, --cgroup, --all; and --user, --env, --keep-env, --no-follow, --no-hold: of what is
 * started. Of struct target_choice. */
extern const struct option_group cli_process_options, cli_start_options;

/* Processes by what people call them: all that are given have to fit. NULL: any. */
struct cli_whose {
	const char *rank; /* "3": RANK and the like of its environment */
	const char *job;  /* Slurm's */
	const char
		*container; /* its id, or the begin of one, or the name that LXC and nspawn have */
	const char *pod;    /* "namespace/name", "name" */
	const char *gpu;    /* its number as NVML has it, or its UUID: who uses it */
};

struct target_choice {
	struct target target;
	struct cli_whose whose;
	int *pids;
	size_t n_pids;
	unsigned given;   /* how many kinds of target */
	const char **env; /* of --env; the caller frees */
	size_t n_env;
};

/* Settles on one target; `argv` is what stood after "--", or NULL. A sentence when it is
 * not one. */
int cli_target_settle(struct target_choice *choice, char **argv, struct err *err);

/* Finds those that are there now, for TARGET_PIDS; a sentence where there is none. */
bool cli_whose_given(const struct cli_whose *whose);
bool cli_whose_is_empty(const struct cli_whose *whose); /* one that was given is "" */
int cli_whose_settle(struct target_choice *choice, struct err *err);

/* "process 4242", "./app --fast": what a target is called; the caller frees it. */
char *cli_target_text(const struct target *target);

/* --only, --skip, --class, --layer, --all-calls. Of struct selection. */
extern const struct option_group cli_selection_options;

/* --duration, --timeout, --max-overhead, --ring-size, --without; the other has these, and
 * --no-returns, --in-process. Of struct capture_options. */
extern const struct option_group cli_bounds_options, cli_limits_options;

/* --gpu, --gpu-window, --cupti. Of this struct. */
struct cli_gpu {
	bool asked;
	bool stalls;    /* --stalls: with GPU times, which it asks for */
	bool by_stalls; /* that alone asked for them */
	struct capture_gpu settings;
};

extern const struct option_group cli_gpu_options;
extern const struct option_group cli_stalls_options; /* --stalls. Of a struct cli_gpu */
void cli_gpu_ask(struct cli_gpu *gpu);               /* --gpu without a list */

/* --gpu-metrics, --no-gpu-metrics, --gpu-busy. Of this struct. */
struct cli_metrics {
	bool asked, off;
	uint64_t busy_ns; /* between two samples; 0: not asked for */
	uint64_t hz;      /* 0: the default */
};

extern const struct option_group cli_metrics_options;

/* Whether what is asked for fits the target. */
int cli_metrics_check(const struct cli_metrics *metrics, const struct target *target,
                      struct err *err);

/* How they were taken: a line of `info`, a member of its object. Nothing where they were not. */
struct json;
void info_add_metrics(struct buf *out, const struct run_info *run);
void info_json_metrics(struct json *json, const struct run_info *run);

#define CLI_GPU_BUSY_NS 750000ull /* 1,333 samples a second: 8 % of a CPU beside an H200 */

/* `by_default`: where neither was given. */
void cli_metrics_settle(const struct cli_metrics *metrics, bool by_default,
                        struct capture_options *capture);

/*
 * -F, --launch-stacks; the other has --stacks as well, without which the two are refused. Of this
 * struct, after cli_stacks_init().
 */
struct cli_stacks {
	bool samples, blocked, host_waits, no_wakers, none;
	uint32_t chosen; /* of --stacks, while it is parsed */
	uint32_t calls;  /* whose stacks: enum stack_calls */
	uint64_t hz;
	struct capture_stacks settings;
	const char *given; /* -F or --launch-stacks; NULL: neither was */
};

#define CLI_STACKS_HZ 49
#define CLI_WHY_HZ                                                                                 \
	99 /* of `why`, and of record by itself: most lines are known by samples alone             \
	    */
#define CLI_STACKS_CALLS 1000   /* walked a second of each thread */
#define CLI_BLOCKED_NS   100000 /* shorter ones are added up */
#define CLI_WAITS_NS     10000  /* the same of --host-waits: a disk answers in some 30 us */

extern const struct option_group cli_stacks_options, cli_which_stacks_options;

void cli_stacks_init(struct cli_stacks *stacks);
void cli_stacks_all(struct cli_stacks *stacks); /* --stacks without a list */

/* What costs next to nothing, where nothing was asked for. */
void cli_stacks_cheap(struct cli_stacks *stacks);

/* The row of --host-waits, and the same where it is not given by itself. */
#define CLI_WAITS_HELP                                                                             \
	"what threads wait for (a CPU, a disk, the network, locks); times below MIN are added "    \
	"up (default: 10us)"
bool cli_take_waits(const struct argp_state *state, void *stacks, const char *value);
#define CLI_HOST_WAITS_ROW(at, help)                                                               \
	{                                                                                          \
		"host-waits", 0, "MIN", help, OPTION_TAKE, at,                                     \
			.take = cli_take_waits, .optional = true,                                  \
			.is_no = "duration (10us, 1.5ms, 2s, 3m)"                                  \
	}
void cli_stacks_wait(struct cli_stacks *stacks);

/* For struct capture_options; NULL: none. It is in `stacks`. */
const struct capture_stacks *cli_stacks_settle(struct cli_stacks *stacks);

/* The same options as those of a GPU, each with a sentence on which commands have them. */
extern const struct option_group cli_no_gpu_options;

/* --hook, --hooks, --hook-limit. Of struct hook_list. */
extern const struct option_group cli_hooks_options;
extern const struct option_group cli_no_hooks_options; /* says why the agent has none */

/* Refuses what cannot be with --no-returns. */
int cli_hooks_check(const struct hook_list *hooks, bool returns, struct err *err);

/* Refuses, for a profile, what is a moment. */
int cli_hooks_check_spans(const struct hook_list *hooks, struct err *err);

/* All of these, and the command after "--": what trace, record and top share. Of this struct. */
struct cli_attach {
	struct target_choice choice;
	struct selection selection;
	struct hook_list hooks;
	struct cli_gpu gpu;
	struct capture_options capture;
	char **command; /* NULL: none */
};

extern const struct option_group cli_attach_options;

/* Which rank the others wait for is recorded, too: NCCL's calls, and what its RAS says. */
void cli_ranks_ask(struct cli_attach *attach, bool no_ras);

/* What `why` records but for ranks: what threads do and wait for, and GPU times, so far apart that
 * they cost little, or all the time, or none. */
enum cli_why_gpu { CLI_WHY_GPU_WINDOWS, CLI_WHY_GPU, CLI_WHY_NO_GPU };

void cli_why_choose(struct cli_attach *attach, struct cli_stacks *stacks, enum cli_why_gpu gpu);

/* Frees what parsing made. */
void cli_attach_free(struct cli_attach *attach);

/*
 * Rows that several groups have: `type` is the group's struct, `member` what the value goes to.
 */
#define CLI_NO_RAS_ROW(type, member)                                                               \
	{                                                                                          \
		"no-ras", 0, NULL,                                                                 \
			"do not ask NCCL's RAS (port 28028 of the programs' loopback) which rank " \
			"each is",                                                                 \
			OPTION_YES, offsetof(type, member)                                         \
	}
#define CLI_DURATION_ROW(type, member)                                                             \
	{                                                                                          \
		"duration", 0, "TIME", "end after this time (10s, 2m)", OPTION_TIME,               \
			offsetof(type, member), .least = 1, .most = OPTION_ANY                     \
	}
#define CLI_TIMEOUT_ROW(type, member)                                                              \
	{                                                                                          \
		"timeout", 0, "TIME", "give up when no CUDA library was loaded by then",           \
			OPTION_TIME, offsetof(type, member), .least = 1, .most = OPTION_ANY        \
	}
#define CLI_RING_SIZE_ROW(type, member, help)                                                      \
	{                                                                                          \
		"ring-size", 0, "BYTES", help, OPTION_BYTES, offsetof(type, member),               \
			.least = 64 << 10, .most = 8ull << 30, .is_no = "size from 64KiB to 8GiB"  \
	}
#define CLI_WITHOUT_ROW(type, member)                                                              \
	{                                                                                          \
		"without", 0, "LIST",                                                              \
			"kernel features not to use, as 'cuscope doctor' names them", OPTION_TEXT, \
			offsetof(type, member), .offer = completion_features, .list = true         \
	}
#define CLI_IN_PROCESS_ROW(type, member)                                                           \
	{                                                                                          \
		"in-process", 0, NULL,                                                             \
			"record calls inside of the processes, where that can be, without the "    \
			"traps of probes",                                                         \
			OPTION_TAKE, offsetof(type, member), .take = cli_take_in_process           \
	}
#define CLI_NO_IN_PROCESS_ROW(type, member, help)                                                  \
	{                                                                                          \
		"no-in-process", 0, NULL, help, OPTION_TAKE, offsetof(type, member),               \
			.take = cli_take_no_in_process                                             \
	}
#define CLI_COLOR_ROW(type, member)                                                                \
	{                                                                                          \
		"color", 0, "WHEN",                                                                \
			"always, never, or auto (the default): on a terminal, unless NO_COLOR is " \
			"set",                                                                     \
			OPTION_TEXT, offsetof(type, member), .words = cli_whens                    \
	}
#define CLI_TABLE_FORMAT_ROW(type, member)                                                         \
	{                                                                                          \
		"format", 0, "NAME", "table (default), csv or json", OPTION_WORD,                  \
			offsetof(type, member), .words = table_form_names, .is_no = "format"       \
	}
#define CLI_TOP_ROW(type, member)                                                                  \
	{                                                                                          \
		"top", 0, "N", "the first N rows of each table", OPTION_NUMBER,                    \
			offsetof(type, member), .least = 1, .most = OPTION_ANY                     \
	}
#define CLI_SINK_FORMAT_ROW(type, member)                                                          \
	{                                                                                          \
		"format", 0, "NAME", .kind = OPTION_TAKE, .at = offsetof(type, member),            \
				     .take = cli_take_format, .tell = cli_help_formats,            \
				     .offer = completion_sinks                                     \
	}
#define CLI_FORCE_ROW(type, member, help)                                                          \
	{                                                                                          \
		"force", 0, NULL, help, OPTION_YES, offsetof(type, member)                         \
	}
/* The permissions of files. */
#define CLI_MODE_ROW(type, member)                                                                 \
	{                                                                                          \
		"output-mode", 0, "BITS", "permissions of the files that are made (0600)",         \
			OPTION_TAKE, offsetof(type, member),                                       \
			.take = cli_take_mode,                                                     \
			.is_no = "mode in octal digits, readable by its owner (0600, 640, 0644)"   \
	}
extern const char *const cli_whens[]; /* always, never, auto */
bool cli_take_in_process(const struct argp_state *state, void *to, const char *value);
bool cli_take_no_in_process(const struct argp_state *state, void *to, const char *value);
bool cli_take_mode(const struct argp_state *state, void *to, const char *value);
bool cli_take_format(const struct argp_state *state, void *to, const char *value);

/* What is given up for its cost is a matter of probes: those options do not go with it. */
void cli_check_in_process(const struct argp_state *state, const struct capture_options *capture);

/* --from, --to, --pid, --function, --kernel: of the commands that read trace files, and --failed,
 * --max-events of those whose output has none of its own. Of struct cli_range. */
extern const struct option_group cli_range_options, cli_calls_options;

/* --from, --to alone, of commands for which a trace file is one of several. Of the same. */
extern const struct option_group cli_times_options;

struct cli_range {
	uint64_t from_ns, to_ns; /* since the trace's begin */
	bool has_from, has_to;
	bool cut;  /* as struct trace_read_options has it */
	int *pids; /* the caller frees */
	size_t n_pids;
	const char *rank; /* processes that say that they are this one; NULL: all */
	struct filter_choice filter;
	uint64_t max_size; /* of what is written; has_max_size: 0 is any */
	bool has_max_size;
};

/*
 * What a file tells may be made to fill disks, so each output of it has a bound: --max-size, or
 * far more than a file that was recorded takes. `input` NULL: it is made of what is traced. So has
 * what is held of it to say why.
 */
void cli_bound_output(const struct cli_range *range, const char *input);
void cli_bound_outputs(const struct cli_range *range, const char *const *inputs, size_t n);
bool cli_is_full(int rc); /* a failure: the bound was reached */

/* When the part of a file begins that is asked for, since 1970, and how long it is. */
void cli_range_times(const struct cli_range *range, const struct run_info *run, uint64_t *begin_ns,
                     uint64_t *duration_ns);

bool cli_is_part(const struct cli_range *range);   /* not all of the trace, */
bool cli_is_chosen(const struct cli_range *range); /* in all of its times not all */

/* That part, for trace_read(): what begins is to be ended, also where it fails for want of such a
 * process. */
int cli_range_begin(const struct trace_file *file, const struct cli_range *range,
                    struct trace_read_options *read, struct err *err);
void cli_range_end(const struct cli_range *range, struct trace_read_options *read);

/* Whether processes of several ranks are in it, this one among them. */
bool cli_has_rank_of_several(const struct run_info *run, const char *rank);

/* trace_read() of that part. */
int cli_read(struct trace_file *file, const struct cli_range *range,
             struct consumer *const *consumers, size_t n, struct err *err);

/* Files to be read, as they were named; of a folder all *.cuscope in it, by name. */
struct cli_recordings {
	char **paths; /* its own */
	size_t n;
};

/* 0, or a negative errno with a sentence: the folder cannot be read, or has none. */
int cli_recordings_add(struct cli_recordings *all, const char *path, struct err *err);
void cli_recordings_free(struct cli_recordings *all);

/*
 * What makes all figures of a trace too small; nothing where it is whole. A file that was cut short
 * is a failure to be told at the end: -ENODATA and a sentence.
 */
int cli_say_missed(const char *path, const struct run_info *run, struct err *err);

/* Whether there is something to show after cli_read(): of a damaged file, what could be read. */
bool cli_worth_showing(int rc);

/* Below tables for people: that they are not of all. Nothing where the file is whole. */
void cli_print_incomplete(const struct run_info *run);

/* Why a table was not printed. That its reader (head, less) has seen enough is no news to him. */
void cli_say_failure(const struct err *err);

/* ---- output formats -------------------------------------------------------------------------- */

struct sink_format;

/* --failed, --min-duration, --max-events, in group 3. Of struct sink_options. */
extern const struct option_group cli_filter_options;

/* The format that a file's name ends in; NULL, with a sentence, where it is none of the endings. */
const struct sink_format *cli_format_of(const char *path, struct err *err);

/* What --help says of them: every format with its endings; the caller frees it. */
char *cli_help_formats(void);

/* Of a sink that has ended: how often a call and its work were not joined, and what helps. */
void cli_say_unjoined(const struct consumer *sink, const char *advice);

/* Whether a format can go to standard output: -EINVAL and a sentence where it cannot. */
int cli_check_stdout(const struct sink_format *format, struct err *err);

/* The html page of a recording. */
struct cli_page {
	const char *path; /* NULL: none was asked for */
	bool force;       /* it takes the place of a file */
	mode_t mode;
};

bool cli_is_page(const char *path); /* by its ending; NULL: no */

/* Whether it can be written where it is to be: before what takes long. 0 or a negative errno. */
int cli_page_check(const struct cli_page *page, struct err *err);

/*
 * Writes it, of all of a trace that is called `trace`; of a descriptor, which is the callee's to
 * close. A page of a trace that is damaged or was cut short is kept, says so itself, and so does
 * the failure that is returned.
 */
int cli_page_write(struct trace_file *file, const char *trace, const struct cli_page *page,
                   struct err *err);
int cli_page_of(int fd, const char *trace, const struct cli_page *page, struct err *err);

/* The page of two recordings that differ; what failed is told. Returns the exit status. */
struct page_pair_options;
struct cli_pair {
	const char *const *paths; /* of A and of B */
	const struct page_pair_options *compare;
	struct cli_range range;
	struct cli_page page;
};

int cli_pair_write(const struct cli_pair *pair, const char *called);

/* ---- tracing ------------------------------------------------------------------------------- */

bool cli_is_stdout(FILE *out); /* by another name too, such as /dev/stdout */

/*
 * Before a capture, where `out` has what a program is to read: a command that is started shares
 * standard output with it no more, and what it prints there goes to standard error.
 */
void cli_part_command(FILE *out, struct target *target);

/*
 * A file that grows while something is traced: there from its begin, or, where it is to take the
 * place of another (`force`), from new_file_place() on. What is no regular file is written to as it
 * is. 0 or a negative errno.
 */
int cli_create(struct new_file *file, const char *path, bool force, mode_t mode, struct err *err);

/*
 * The end of such a file, if it was opened. Without `keep`, one that is empty or for which there
 * was no new_file_place() leaves nothing behind that --force would be needed for next time.
 */
int cli_settle(struct new_file *file, bool keep, struct err *err);

/*
 * A consumer that gives a file its place with the first event, or when there is nothing to wait for
 * but events: a command that turned out not to run has cost no file. Comes before what writes.
 */
struct consumer *cli_placer(struct new_file *file);

/*
 * A capture from its opening to its end. Returns the exit status: the command's, where there is
 * one. Notices are said as messages, unless `options` has another place for them. A failure of the
 * run is said at once, before a command that still runs is waited for; one of the opening is left
 * in `err`.
 */
int cli_capture(struct capture_options *options, struct err *err);

/* One that was opened, to its end, and freed; what went wrong is said. Returns the exit status. */
int cli_capture_run(struct capture *capture, struct err *err);

/* ---- probes hooks --------------------------------------------------------------------------- */

/* Whether a word of the command line is a hook: "kprobe:nv*". */
bool probes_is_hook(const char *word);

/*
 * Lists it: of `file` where there is one, else of the processes of `choice` where one is given.
 * Returns the exit status; what failed is told.
 */
int probes_list_hook(const char *text, const char *file, struct target_choice *choice,
                     enum table_form form);
