// SPDX-License-Identifier: MIT
/* `cuscope probes`: the functions that would be hooked, and where. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "divert/entry_file.h"
#include "probe/helper.h"
#include "probe/libraries.h"
#include "probe/maps.h"
#include "probe/module.h"

struct probes_options {
	struct target_choice choice;
	struct selection selection;
	bool divert;
	bool formatted;
	enum table_form form;
	const char *word[2]; /* FILE and GLOB or SPEC, in this order, or one of them */
	size_t n_words;
};

struct shown {
	dev_t dev;
	uint64_t inode;
};

struct probes_listing {
	const struct selection *selection;
	const char *glob;
	bool divert;         /* lists which could be diverted, not where probes go */
	pid_t pid;           /* whose maps are being read */
	struct shown *shown; /* files that were looked into */
	size_t n_shown;
	size_t modules, functions, hooked, movable, listed;
};

static bool probes_word(const struct argp_state *state, void *into, char *word)
{
	struct probes_options *o = into;

	if (o->n_words == 2)
		return false;
	o->word[o->n_words++] = word;
	return true;
}

static const struct option_row rows[] = {
	{ "divert", 0, NULL,
	  "show which functions could be diverted at their entry, and why the others could not",
	  OPTION_YES, offsetof(struct probes_options, divert) },
	{ "format", 0, "NAME", "of a SPEC: table (default), csv or json", OPTION_WORD,
	  offsetof(struct probes_options, form), OPTION_WITH(struct probes_options, formatted),
	  .words = table_form_names, .is_no = "format" },
};

static const struct option_part parts[] = {
	{ &cli_process_options, offsetof(struct probes_options, choice) },
	{ &cli_selection_options, offsetof(struct probes_options, selection) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .word = probes_word },
	.operands = "[FILE] [GLOB|SPEC]",
	.doc = "Lists every function that 'cuscope trace' would hook with the same options: where "
	       "the probe goes and why, its class, and whether it is on. With SPEC, what a hook of "
	       "your own stands for."
	       "\vOf FILE (a library or a program), of the libraries that processes have loaded "
	       "(-p, --name, --cgroup, --all), or of the libraries found on this machine. GLOB "
	       "limits the list to matching names.\n\n"
	       "SPEC is a hook as --hook has it: 'kprobe:nv*', 'tracepoint:sched:*', "
	       "'uprobe:libnccl.so:nccl*'. What it stands for is listed, and why some of that "
	       "cannot be hooked.\n",
};

/* ---- printing ------------------------------------------------------------------------------ */

static const char *state_of(const struct hook *hook)
{
	switch (hook->group) {
	case HOOK_OFF:
		return "off";
	case HOOK_SUPPORT:
		return "hidden";
	case HOOK_RUNTIME_LAUNCH:
		return "no driver";
	default:
		return "on";
	}
}

static void print_hook(const struct hook *hook)
{
	AT_END(buf_free) struct buf instruction = { 0 };

	if (hook->placement.skip)
		buf_printf(&instruction, "+%u ", hook->placement.skip);
	buf_puts(&instruction, hook->placement.instruction);
	cli_print_line("  %-44s %-8s %-9s 0x%-9lx %-14s %-5s %s%s%s%s%s", hook->name,
	               api_class_name(api_class(hook->name)), state_of(hook),
	               (hook->entry + hook->placement.skip), instruction.data,
	               hook->placement.emulated ? "cheap" : "slow", hook->placement.why,
	               hook->why ? "; " : "", hook->why ? hook->why : "",
	               hook->also ? "; also called " : "", hook->also ? hook->also : "");
}

static const char *layers_of(const struct module *module)
{
	if (module->has[LAYER_DRIVER] && module->has[LAYER_RUNTIME])
		return "driver and runtime";
	return module->has[LAYER_DRIVER] ? "driver" : "runtime";
}

static bool is_asked_for(const struct probes_listing *listing, const struct hook *hook)
{
	return !listing->glob || selection_matches(listing->glob, hook->name);
}

static void print_probes(struct probes_listing *listing, const struct module *module)
{
	size_t hooked = 0;

	for (size_t i = 0; i < module->n_hooks; i++)
		hooked += module->hooks[i].group != HOOK_OFF;
	if (listing->modules)
		putchar('\n');
	cli_print_line("%s: %s, %zu functions, %zu hooked", module->path, layers_of(module),
	               module->n_hooks, hooked);
	cli_print_line("  %-44s %-8s %-9s %-11s %-14s %-5s %s", "FUNCTION", "CLASS", "STATE",
	               "OFFSET", "INSTRUCTION", "COST", "WHY");
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (!is_asked_for(listing, &module->hooks[i]))
			continue;
		print_hook(&module->hooks[i]);
		listing->listed++;
	}
	listing->hooked += hooked;
}

static void print_entry(const struct hook *hook, const struct entry_function *function)
{
	char why[96];

	if (function->refusal)
		snprintf(why, sizeof(why), "%s, at +%u", entry_refusal_text(function->refusal),
		         function->refused_at);
	else
		snprintf(why, sizeof(why), "%u bytes at +%u, %s the probe", function->bytes,
		         function->skip, function->jump == JUMP_BEFORE_PROBE ? "before" : "behind");
	cli_print_line("  %-44s %-8s %-9s 0x%-9lx %-6s %s", hook->name,
	               api_class_name(api_class(hook->name)), state_of(hook), hook->entry,
	               function->refusal ? "no" : "yes", why);
}

/* Reads the file once more: it is the module's, whose hooks are in the same order. */
static int print_entries(struct probes_listing *listing, const struct module *module,
                         struct err *err)
{
	AT_END(at_end_free) struct entry_function *functions;
	size_t count, movable = 0;
	int r = entry_module_judge(module->fd, module->path, &functions, &count, err);

	if (!r && count != module->n_hooks)
		r = err_set(err, EAGAIN, "%s changed while it was read", module->path);
	for (size_t i = 0; !r && i < count; i++)
		movable += functions[i].refusal == ENTRY_MOVABLE;
	if (!r && listing->modules)
		putchar('\n');
	if (!r) {
		cli_print_line("%s: %s, %zu functions, %zu could be diverted", module->path,
		               layers_of(module), count, movable);
		cli_print_line("  %-44s %-8s %-9s %-11s %-6s %s", "FUNCTION", "CLASS", "STATE",
		               "ENTRY", "DIVERT", "WHY");
	}
	for (size_t i = 0; !r && i < count; i++) {
		if (!is_asked_for(listing, &module->hooks[i]))
			continue;
		print_entry(&module->hooks[i], &functions[i]);
		listing->listed++;
	}
	listing->movable += movable;
	return r;
}

static int print_module(struct probes_listing *listing, const struct module *module,
                        struct err *err)
{
	int r = 0;

	if (listing->divert)
		r = print_entries(listing, module, err);
	else
		print_probes(listing, module);
	if (r)
		return r;
	listing->modules++;
	listing->functions += module->n_hooks;
	return 0;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* Prints the module behind `fd`, once. Returns what module_open says. Takes `fd` over. */
static int list_fd(struct probes_listing *listing, int fd, const char *path, struct err *err)
{
	struct module *module;
	struct stat st = { 0 };
	int r;

	file_stat(fd, &st);
	for (size_t i = 0; i < listing->n_shown; i++) {
		if (listing->shown[i].dev == st.st_dev && listing->shown[i].inode == st.st_ino) {
			close(fd);
			return 1;
		}
	}
	*VEC_ADD(listing->shown, listing->n_shown) = (struct shown){ st.st_dev, st.st_ino };
	r = module_open(fd, path, ELF_WHOLE, listing->selection, &module, err);
	if (r)
		return r;
	r = print_module(listing, module, err);
	module_free(module);
	return r;
}

static int list_mapping(const struct mapping *mapping, void *data)
{
	struct probes_listing *listing = data;
	int fd = mapping_open(listing->pid, mapping, NULL);

	if (fd >= 0)
		list_fd(listing, fd, mapping->path, NULL);
	return 0;
}

static int list_process(void *data, pid_t pid)
{
	struct probes_listing *listing = data;

	listing->pid = pid;
	maps_each(pid, list_mapping, listing, NULL); /* gone, or not ours to read */
	return 0;
}

static int list_library(void *data, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0)
		list_fd(data, fd, path, NULL);
	return 0;
}

static int list_file(struct probes_listing *listing, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	r = list_fd(listing, fd, path, err);
	if (r == 1)
		return err_set(err, ENOENT,
		               "%s holds no CUDA functions (neither a driver's cuInit and "
		               "cuLaunchKernel, nor cudaLaunchKernel)",
		               path);
	return r;
}

static int list(struct probes_options *o, struct probes_listing *listing, struct err *err)
{
	bool file = o->n_words && access(o->word[0], F_OK) == 0;
	int r;

	if (o->n_words == 2 && !file)
		return err_set(err, ENOENT, "cannot open %s: %s", o->word[0], strerror(ENOENT));
	if (!file && o->n_words && strchr(o->word[0], '/'))
		return err_set(err, ENOENT, "cannot open %s: %s", o->word[0], strerror(ENOENT));
	listing->glob = o->n_words ? o->word[file] : NULL;
	if (file && o->n_words == 1)
		listing->glob = NULL;
	if (file)
		return list_file(listing, o->word[0], err);
	if (!o->choice.given) {
		libraries_each(list_library, listing);
		return listing->modules ? 0
		                        : err_set(err, ENOENT,
		                                  "no CUDA library in the usual places: name a "
		                                  "FILE, or a process with -p");
	}
	r = helper_begin(err);
	if (!r)
		r = cli_target_settle(&o->choice, NULL, err);
	if (!r)
		r = target_each(&o->choice.target, list_process, listing, err);
	if (!r && !listing->modules)
		r = err_set(err, ENOENT, "none of these processes has loaded CUDA");
	return r;
}

/* The exit status of a list of what a hook stands for; -1: none was asked for. */
static int list_hook(struct probes_options *o)
{
	const char *spec = o->n_words ? o->word[o->n_words - 1] : NULL;

	if (!spec || !probes_is_hook(spec)) {
		if (!o->formatted)
			return -1;
		cli_say("--format is for lists of hooks: cuscope probes --format csv 'kprobe:nv*'");
		return EXIT_USAGE;
	}
	if (o->divert) {
		cli_say("--divert is for CUDA's functions alone");
		return EXIT_USAGE;
	}
	return probes_list_hook(spec, o->n_words == 2 ? o->word[0] : NULL, &o->choice, o->form);
}

int cli_probes(int argc, char **argv)
{
	struct probes_options o = { 0 };
	struct probes_listing listing = { .selection = &o.selection };
	struct err err = { 0 };
	int status;

	option_parse(&options, argc, argv, false, &o);
	status = list_hook(&o);
	if (status >= 0) {
		FREE_ALL(o.choice.pids, o.selection.only, o.selection.skip);
		return status;
	}
	listing.divert = o.divert;
	if (!list(&o, &listing, &err) && listing.modules > 1)
		printf("\n%zu modules, %zu functions, %zu %s\n", listing.modules, listing.functions,
		       o.divert ? listing.movable : listing.hooked,
		       o.divert ? "could be diverted" : "hooked");
	if (!err.code && !listing.listed)
		err_set(&err, ENOENT, "no function matches '%s'",
		        listing.glob ? listing.glob : "*");
	if (err.code)
		cli_say("%s", err.text);
	FREE_ALL(listing.shown, o.choice.pids, o.selection.only, o.selection.skip);
	if (!err.code && (fflush(stdout) || ferror(stdout))) {
		cli_say("writing the list: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	return err.code ? EXIT_FAILURE : 0;
}
