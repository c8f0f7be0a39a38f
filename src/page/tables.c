// SPDX-License-Identifier: MIT
/* All reports as tables of a page. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/spill.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "page/page.h"
#include "report/set.h"

/* Reports of the account of time, and all others: about as much work each. */
enum { PART_ACCOUNT, PART_OTHERS, PARTS };

struct tables_part {
	struct report_choice *choices;
	size_t n;
	struct report_set *set; /* NULL: another process has it */
	FILE *out;
	pid_t pid; /* of that; 0: none */
};

struct page_tables {
	struct tables_part parts[PARTS];
	FILE *windows; /* of the account */
	struct consumer **consumers;
	bool is_child;
	const volatile sig_atomic_t *stopped; /* as the sink's */
};

static int part_make(struct tables_part *part, const struct sink *sink, struct err *err)
{
	const struct sink_options *options = &sink->options;
	struct report_set_options set = { .table = { .form = TABLE_FORM_HTML,
		                                     .top = PAGE_TABLE_ROWS },
		                          .from_ns = options->from_ns,
		                          .to_ns = options->to_ns,
		                          .part = options->part,
		                          .chosen = options->chosen,
		                          .work = sink->work };

	part->out = set.table.out = page_temporary(err);
	if (!part->out)
		return err->code;
	return report_set_new(part->choices, part->n, &set, &part->set, err);
}

struct page_tables *page_tables_new(const struct sink *sink, struct err *err)
{
	struct page_tables *tables = xcalloc(1, sizeof(*tables));
	int rc = 0;

	spill_keep(0); /* there are three processes of a page */
	tables->stopped = sink->options.stopped;
	for (const struct report *report = reports; report->name; report++) {
		struct tables_part *part =
			&tables->parts[report->kind->why ? PART_ACCOUNT : PART_OTHERS];

		if (report->kind->rows_come || report->again)
			continue;
		*VEC_ADD(part->choices, part->n) = (struct report_choice){ .report = report };
	}
	for (int i = 0; i < PARTS && !rc; i++)
		rc = part_make(&tables->parts[i], sink, err);
	tables->windows = rc ? NULL : page_temporary(err);
	if (tables->windows)
		return tables;
	page_tables_free(tables);
	return NULL;
}

void page_tables_free(struct page_tables *tables)
{
	if (!tables)
		return;
	page_tables_forget(tables);
	for (int i = 0; i < PARTS; i++) {
		struct tables_part *part = &tables->parts[i];

		if (part->pid) {
			kill(part->pid, SIGKILL);
			waitpid(part->pid, NULL, 0);
		}
		free(part->choices);
		if (part->out)
			fclose(part->out);
	}
	free(tables->consumers);
	if (tables->windows)
		fclose(tables->windows);
	free(tables);
}

struct consumer *const *page_tables_consumers(struct page_tables *tables, size_t *n)
{
	*n = 0;
	for (int i = 0; i < PARTS; i++) {
		struct consumer *const *of;
		size_t more = 0;

		if (!tables->parts[i].set)
			continue;
		of = report_set_consumers(tables->parts[i].set, &more);
		tables->consumers = xrealloc(tables->consumers, (*n + more) * sizeof(of[0]));
		memcpy(tables->consumers + *n, of, more * sizeof(of[0]));
		*n += more;
	}
	return tables->consumers;
}

struct consumer *page_tables_why(const struct page_tables *tables)
{
	const struct report_set *set = tables->parts[PART_ACCOUNT].set;

	return set ? report_set_why(set) : NULL;
}

void page_tables_forget(struct page_tables *tables)
{
	for (int i = 0; i < PARTS; i++) {
		report_set_free(tables->parts[i].set);
		tables->parts[i].set = NULL;
	}
}

/* ---- processes of their own ------------------------------------------------------------------ */

/* It goes with the one that writes, and says nothing: what goes wrong with the file that one says.
 */
static void child_begin(struct page_tables *tables, int number)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	tables->is_child = true;
	for (int i = 0; i < PARTS; i++) {
		tables->parts[i].pid = 0;
		if (i == number)
			continue;
		report_set_free(tables->parts[i].set);
		tables->parts[i].set = NULL;
	}
}

bool page_tables_apart(struct page_tables *tables)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		return false;
	for (int i = 0; i < PARTS; i++) {
		struct tables_part *part = &tables->parts[i];
		pid_t pid = fork();

		if (!pid) {
			child_begin(tables, i);
			return true;
		}
		if (pid < 0) /* this one has it, then */
			continue;
		part->pid = pid;
		report_set_free(part->set);
		part->set = NULL;
	}
	return false;
}

bool page_tables_join(const struct page_tables *tables)
{
	return !tables->is_child || tables->parts[PART_OTHERS].set;
}

/* The sentence of a failure stands where the tables would: by the file itself, since what could not
 * be written is still to be. Where there is no room for it, the exit status tells enough. */
static void part_say(const struct tables_part *part, const struct err *failed)
{
	int file = fileno(part->out);
	size_t len = strlen(failed->text);

	if (ftruncate(file, 0) || pwrite(file, failed->text, len, 0) < (ssize_t)len)
		(void)!ftruncate(file, 0);
}

static void child_end(struct page_tables *tables, const struct err *err)
{
	struct err failed = *err;

	for (int i = 0; i < PARTS && !failed.code; i++)
		if (tables->parts[i].set && fflush(tables->parts[i].out))
			err_set(&failed, errno, "cannot write a temporary file: %s",
			        strerror(errno));
	if (!failed.code && fflush(tables->windows))
		err_set(&failed, errno, "cannot write a temporary file: %s", strerror(errno));
	for (int i = 0; i < PARTS && failed.code; i++)
		if (tables->parts[i].set)
			part_say(&tables->parts[i], &failed);
	_exit(-failed.code);
}

#define LOOK_MS 10

/* Whoever stops this process does not stop that one. */
static int part_await(const struct page_tables *tables, const struct tables_part *part, int *status,
                      struct err *err)
{
	pid_t ended;

	while (!(ended = waitpid(part->pid, status, WNOHANG))) {
		if (tables->stopped && *tables->stopped)
			return err_set(err, EINTR, "interrupted");
		usleep(LOOK_MS * 1000);
	}
	return ended < 0 ? err_set(err, errno, "cannot wait for the reports: %s", strerror(errno))
	                 : 0;
}

static int part_wait(const struct page_tables *tables, struct tables_part *part, struct err *err)
{
	char text[sizeof(err->text)];
	ssize_t len;
	int status, rc;

	if (!part->pid)
		return 0;
	rc = part_await(tables, part, &status, err);
	if (rc)
		return rc;
	part->pid = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFSIGNALED(status))
		return err_set(err, ECHILD,
		               "the process that makes the reports was ended by "
		               "signal %d",
		               WTERMSIG(status));
	len = pread(fileno(part->out), text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	if (len <= 0)
		return err_set(err, WEXITSTATUS(status), "cannot write a temporary file: %s",
		               strerror(WEXITSTATUS(status)));
	return err_set(err, WEXITSTATUS(status), "%s", text);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* An object, of which only the members stay. */
static int part_finish(struct tables_part *part, struct err *err)
{
	int rc = report_set_finish(part->set, err);

	if (rc)
		return rc;
	if (fflush(part->out) || ftruncate(fileno(part->out), ftello(part->out) - 3))
		return err_set(err, errno, "cannot write a temporary file: %s", strerror(errno));
	return 0;
}

int page_tables_finish(struct page_tables *tables, const struct run_info *run, struct err *err)
{
	size_t n;
	struct consumer *const *consumers = page_tables_consumers(tables, &n);
	int rc = consumers_end(consumers, n, run, err);

	for (int i = 0; i < PARTS && !rc; i++)
		if (tables->parts[i].set)
			rc = part_finish(&tables->parts[i], err);
	if (!rc && page_tables_why(tables))
		page_windows_write(page_tables_why(tables), tables->windows);
	if (tables->is_child)
		child_end(tables, rc ? err : &(struct err){ 0 });
	for (int i = 0; i < PARTS && !rc; i++)
		rc = part_wait(tables, &tables->parts[i], err);
	rewind(tables->windows);
	return rc;
}

FILE *page_tables_windows(const struct page_tables *tables)
{
	return tables->windows;
}

FILE *page_tables_file(const struct page_tables *tables, size_t i)
{
	if (i >= PARTS)
		return NULL;
	fseek(tables->parts[i].out, 1, SEEK_SET);
	return tables->parts[i].out;
}

void page_tables_json(const struct page_tables *tables, const char *path, struct json *json)
{
	json_open(json, "reports", '[');
	for (const struct report *report = reports; report->name; report++) {
		AT_END(buf_free) struct buf command = { 0 };

		if (report->kind->rows_come || report->again)
			continue;
		buf_printf(&command, "cuscope report %s %s", path, report->name);
		json_open(json, NULL, '{');
		json_string(json, "name", report->name);
		json_string(json, "help", report->help);
		json_string(json, "command", command.data);
		json_close(json, '}');
	}
	json_close(json, ']');
}
