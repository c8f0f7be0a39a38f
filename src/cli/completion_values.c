// SPDX-License-Identifier: MIT
/* What the values of options and operands can be. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/option.h"
#include "output/sink.h"
#include "probe/kernel_features.h"
#include "report/report.h"

#define PROCESSES_MOST   4096
#define DESCRIPTORS_MOST 256      /* of a process that are looked at */
#define PF_KTHREAD       0x200000 /* of the kernel's include/linux/sched.h */

typedef const struct completion_value value;

/* What stands behind the last comma of a list; `before` has the rest, for the caller to free. */
static struct completion_value last_of_list(value *v, struct buf *before)
{
	const char *comma = strrchr(v->typed, ',');
	const char *typed = comma ? comma + 1 : v->typed;

	buf_puts(before, v->before);
	buf_add(before, v->typed, (size_t)(typed - v->typed));
	return (struct completion_value){ .before = before->data, .typed = typed };
}

static void offer_words(value *v, const char *const *words)
{
	for (size_t i = 0; words[i]; i++)
		completion_offer(v, words[i], NULL);
}

/* ---- of tables ----------------------------------------------------------------------------- */

void completion_features(value *v)
{
	for (int i = 0; i < FEATURE_COUNT; i++)
		completion_offer(v, feature_info(i)->name, feature_info(i)->gives);
}

void completion_sinks(value *v)
{
	for (const struct sink_format *format = sink_formats; format->name; format++)
		completion_offer(v, format->name, format->help);
}

void completion_functions(value *v)
{
	for (size_t i = 0; api_known(i); i++)
		completion_offer(v, api_known(i), NULL);
}

/* Of hooks, as they begin: "kprobe:". */
static void offer_functions_and_kinds(value *v)
{
	char begin[32];

	completion_functions(v);
	for (int kind = 0; kind < SPEC_KINDS; kind++) {
		snprintf(begin, sizeof(begin), "%s:", spec_kind_name(kind));
		completion_offer(v, begin, NULL);
	}
}

static void offer_variant(value *v, const struct report *report, const char *variant)
{
	char name[80];

	snprintf(name, sizeof(name), "%s:%s", report->name, variant);
	completion_offer(v, name, report->help);
}

/* The variants only when there is a colon: they would be half of the list. */
static void offer_reports(value *v)
{
	bool variants = strchr(v->typed, ':');

	for (const struct report *report = reports; report->name; report++) {
		if (!variants)
			completion_offer(v, report->name, report->help);
		if (variants && report->kernel_names) {
			offer_variant(v, report, "base");
			offer_variant(v, report, "mangled");
		}
		if (variants && report->places)
			offer_variant(v, report, "place");
	}
}

/* ---- of this machine ----------------------------------------------------------------------- */

void completion_variables(value *v)
{
	for (char **variable = environ; *variable; variable++) {
		size_t len = strspn(*variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                               "abcdefghijklmnopqrstuvwxyz0123456789_");
		char name[64];

		if ((*variable)[len] != '=' || len >= sizeof(name))
			continue;
		memcpy(name, *variable, len);
		name[len] = '\0';
		completion_offer(v, name, NULL);
	}
}

/* By its descriptors: what it has mapped could only be read when its memory is free to be. */
static bool has_gpu(pid_t pid)
{
	char path[64], target[32];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	for (int i = 0; folder && !found && i < DESCRIPTORS_MOST && (entry = readdir(folder));
	     i++) {
		ssize_t len = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		target[len > 0 ? len : 0] = '\0';
		found = !strncmp(target, "/dev/nvidia", strlen("/dev/nvidia"));
	}
	if (folder)
		closedir(folder);
	return found;
}

struct running {
	pid_t pid;
	char name[32];
	bool gpu;
};

/* Those of users, as far as this user can see them. The caller frees *list. */
static size_t list_processes(struct running **list, bool *gpu)
{
	AT_END(process_list_end) DIR *processes = process_list(0);
	struct process_stat stat;
	size_t count = 0;
	pid_t pid;

	*gpu = false;
	*list = calloc(PROCESSES_MOST, sizeof(**list));
	while (*list && count < PROCESSES_MOST && (pid = process_next(processes))) {
		struct running *p = *list + count;

		p->pid = pid;
		if (pid == getpid() || pid == getppid() || !process_stat_read(pid, 0, &stat) ||
		    stat.flags & PF_KTHREAD || !process_comm(pid, 0, p->name, sizeof(p->name)))
			continue;
		p->gpu = has_gpu(p->pid);
		*gpu |= p->gpu;
		count++;
	}
	return count;
}

/* A process names itself, and a shell puts what is offered on the command line. */
static bool is_harmless(const char *name)
{
	return name[0] != '-' && name[0] &&
	       !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                          "0123456789._+-")];
}

/* Where some use a GPU, those alone. */
static void offer_processes(value *v, bool by_name)
{
	AT_END(at_end_free) struct running *list;
	char pid[16];
	bool gpu;
	size_t count = list_processes(&list, &gpu);

	for (size_t i = 0; i < count; i++) {
		snprintf(pid, sizeof(pid), "%d", list[i].pid);
		if (gpu && !list[i].gpu)
			continue;
		if (!by_name)
			completion_offer(v, pid, list[i].name);
		else if (is_harmless(list[i].name))
			completion_offer(v, list[i].name, NULL);
	}
}

void completion_pids(value *v)
{
	offer_processes(v, false);
}

void completion_names(value *v)
{
	offer_processes(v, true);
}

void completion_users(value *v)
{
	puts(":users");
}

static void offer_files(value *v)
{
	puts(":files");
}

void completion_folders(value *v)
{
	puts(":folders");
}

void completion_traces(value *v)
{
	puts(":files\t.cuscope");
}

/* ---- whose ---------------------------------------------------------------------------------- */

void completion_option_values(const struct option_row *row, value *v)
{
	AT_END(buf_free) struct buf before = { 0 };
	struct completion_value part = *v;

	if (row->list || row->kind == OPTION_SET)
		part = last_of_list(v, &before);
	if (row->offer)
		row->offer(&part);
	else if (row->words)
		offer_words(&part, row->words);
	else if (!strcmp(row->value, "FILE"))
		offer_files(&part);
	else if (!strcmp(row->value, "DIR"))
		completion_folders(&part);
	else if (!strcmp(row->value, "PATH"))
		offer_files(&part);
}

static void offer_tools(value *v)
{
	static const char *const tools[] = { "memleak", "launches", "bandwidth", NULL };
	AT_END(buf_free) struct buf before = { 0 };
	struct completion_value part = last_of_list(v, &before);

	offer_words(&part, tools);
}

/* Words that are no options, by their name in the usage. The first row that fits counts. */
static const struct operand {
	const char *command, *name; /* NULL: of any command */
	void (*offer)(value *v);
} operand_values[] = {
	{ "report", "NAME...", offer_reports },
	{ "diff", "NAME...", offer_reports },
	{ "probes", "FILE", offer_files },
	{ "probes", "GLOB|SPEC", offer_functions_and_kinds },
	{ "watch", "LIST", offer_tools },
	{ NULL, "FILE...", completion_traces },
	{ NULL, "FILE", completion_traces },
	{ NULL, "A", completion_traces },
	{ NULL, "B", completion_traces },
};

void completion_operands(const char *command, const char *name, value *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(operand_values); i++) {
		const struct operand *operand = &operand_values[i];

		if ((operand->command && strcmp(operand->command, command)) ||
		    strcmp(operand->name, name))
			continue;
		operand->offer(v);
		return;
	}
}
