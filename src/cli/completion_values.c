// SPDX-License-Identifier: MIT
/* What the values of options and operands can be. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/completion.h"
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

static void offer_words(value *v, const char *words)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		completion_offer(v, word, NULL);
}

/* ---- of tables ----------------------------------------------------------------------------- */

static void offer_classes(value *v)
{
	for (int i = 0; i < CLASS_COUNT; i++)
		completion_offer(v, api_class_name(i), NULL);
}

static void offer_features(value *v)
{
	for (int i = 0; i < FEATURE_COUNT; i++)
		completion_offer(v, feature_info(i)->name, feature_info(i)->gives);
}

static void offer_sinks(value *v)
{
	for (const struct sink_format *format = sink_formats; format->name; format++)
		completion_offer(v, format->name, format->help);
}

static void offer_forms(value *v)
{
	for (int i = 0; i < TABLE_FORM_COUNT; i++)
		completion_offer(v, table_form_name(i), NULL);
}

static void offer_functions(value *v)
{
	for (size_t i = 0; api_known(i); i++)
		completion_offer(v, api_known(i), NULL);
}

/* Of hooks, as they begin: "kprobe:". */
static void offer_functions_and_kinds(value *v)
{
	char begin[32];

	offer_functions(v);
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

static void offer_variables(value *v)
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

static bool read_name(pid_t pid, char *name, size_t size)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, name, size - 1);
	close(fd);
	if (got <= 0)
		return false;
	name[got] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return true;
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
	DIR *folder = opendir("/proc");
	struct process_stat stat;
	struct dirent *entry;
	size_t count = 0;

	*gpu = false;
	*list = calloc(PROCESSES_MOST, sizeof(**list));
	while (folder && *list && count < PROCESSES_MOST && (entry = readdir(folder))) {
		struct running *p = *list + count;

		p->pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		if (!p->pid || p->pid == getpid() || p->pid == getppid() ||
		    !process_stat_read(p->pid, 0, &stat) || stat.flags & PF_KTHREAD ||
		    !read_name(p->pid, p->name, sizeof(p->name)))
			continue;
		p->gpu = has_gpu(p->pid);
		*gpu |= p->gpu;
		count++;
	}
	if (folder)
		closedir(folder);
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
	struct running *list;
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
	free(list);
}

static void offer_pids(value *v)
{
	offer_processes(v, false);
}

static void offer_names(value *v)
{
	offer_processes(v, true);
}

static void offer_users(value *v)
{
	puts(":users");
}

static void offer_files(value *v)
{
	puts(":files");
}

static void offer_folders(value *v)
{
	puts(":folders");
}

static void offer_traces(value *v)
{
	puts(":files\t.cuscope");
}

/* ---- whose ---------------------------------------------------------------------------------- */

/*
 * The first row that fits counts. `command` NULL: of any, `option` NULL: of any whose argument is
 * called `argument`. Either `words` or `offer` says what there is. tests/completion holds the words
 * to what the program accepts.
 */
static const struct rule {
	const char *command, *option, *argument;
	bool list; /* with commas */
	void (*offer)(value *v);
	const char *words;
} rules[] = {
	{ NULL, "pid", NULL, true, offer_pids, NULL },
	{ NULL, "name", NULL, false, offer_names, NULL },
	{ NULL, "user", NULL, false, offer_users, NULL },
	{ NULL, "env", NULL, false, offer_variables, NULL },
	{ NULL, "cgroup", NULL, false, offer_folders, NULL },
	{ NULL, "class", NULL, true, offer_classes, NULL },
	{ NULL, "layer", NULL, false, NULL, "auto driver runtime both" },
	{ NULL, "only", NULL, false, offer_functions, NULL },
	{ NULL, "skip", NULL, false, offer_functions, NULL },
	{ NULL, "function", NULL, false, offer_functions, NULL },
	{ NULL, "without", NULL, true, offer_features, NULL },
	{ NULL, "gpu", NULL, true, NULL, "kernels copies sets sync graphs nvtx overhead" },
	{ NULL, "stacks", NULL, true, NULL, "samples launches copies waits allocations blocked" },
	{ NULL, "launch-stacks", NULL, false, NULL, "all" },
	{ NULL, "color", NULL, false, NULL, "always never auto" },
	{ "profile", "mode", NULL, false, NULL, "merge gpu cpu off-cpu hooks" },
	{ "trace", "format", NULL, false, offer_sinks, NULL },
	{ "export", "format", NULL, false, offer_sinks, NULL },
	{ "top", "format", NULL, false, NULL, "text json" },
	{ "why", "format", NULL, false, NULL, "text json" },
	{ "memleak", "format", NULL, false, NULL, "table json classic" },
	{ "launches", "format", NULL, false, NULL, "table json classic" },
	{ "bandwidth", "format", NULL, false, NULL, "table json classic" },
	{ "watch", "format", NULL, false, NULL, "table json classic" },
	{ NULL, "format", NULL, false, offer_forms, NULL },
	{ NULL, "label-env", NULL, false, offer_variables, NULL },
	{ "agent", "names", NULL, false, NULL, "gpuprobe" },
	{ NULL, "diff", NULL, false, offer_traces, NULL },
	{ NULL, NULL, "DIR", false, offer_folders, NULL },
	{ NULL, NULL, "PATH", false, offer_files, NULL },
	/* operands */
	{ "why", NULL, "FILE...", false, offer_traces, NULL },
	{ "report", NULL, "NAME...", false, offer_reports, NULL },
	{ "diff", NULL, "NAME...", false, offer_reports, NULL },
	{ "probes", NULL, "FILE", false, offer_files, NULL },
	{ "probes", NULL, "GLOB|SPEC", false, offer_functions_and_kinds, NULL },
	{ "watch", NULL, "LIST", true, NULL, "memleak launches bandwidth" },
};

static bool fits(const struct rule *rule, const char *command, const char *option,
                 const char *argument)
{
	if (rule->command && strcmp(rule->command, command))
		return false;
	if (rule->option)
		return option && !strcmp(rule->option, option);
	return !strcmp(rule->argument, argument);
}

/* Whether there is a row. */
static bool offer_by_rule(const char *command, const char *option, const char *argument, value *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *rule = rules + i;
		struct buf before = { 0 };
		struct completion_value part = *v;

		if (!fits(rule, command, option, argument))
			continue;
		if (rule->list)
			part = last_of_list(v, &before);
		if (rule->offer)
			rule->offer(&part);
		else
			offer_words(&part, rule->words);
		buf_free(&before);
		return true;
	}
	return false;
}

void completion_option_values(const char *command, const struct argp_option *option, value *v)
{
	if (!offer_by_rule(command, option->name, option->arg, v) && !strcmp(option->arg, "FILE"))
		offer_files(v);
}

void completion_operands(const char *command, const char *name, value *v)
{
	if (!offer_by_rule(command, NULL, name, v) &&
	    (!strcmp(name, "FILE") || !strcmp(name, "A") || !strcmp(name, "B")))
		offer_traces(v);
}
