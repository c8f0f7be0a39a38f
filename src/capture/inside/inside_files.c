// SPDX-License-Identifier: MIT
/*
 * Which files a process has mapped, where others of the same functions are hooked. Two files may be
 * one to the kernel, as those of two containers of one image: then each call meets the probes of
 * both, and is told by the hook of either. A file that the process has mapped as well, a second
 * copy of the library, is none of these: its calls meet its own probes alone.
 *
 * A list is made once, and again when the process has mapped another file: at the next turn, while
 * the process is there, or for a call that comes before. It is charged to the process's user. Where
 * there is none, each file may be mapped: calls are told then, maybe twice, and a sentence says so.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "capture/inside/inside_private.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/maps.h"

#include <stdlib.h>
#include <string.h>

#define FILES_MOST 4096        /* of a process */
#define TURN_NS    20000000    /* of lists, in a turn; the others are for the next */
#define AGAIN_NS   1000000000u /* until it is tried again to make one */

static int by_bytes(const void *one, const void *other)
{
	return memcmp(one, other, sizeof(struct inside_file));
}

/* Sorted, each once. */
static void sort_files(struct inside_files *files)
{
	size_t n = 0;

	if (files->n)
		qsort(files->list, files->n, sizeof(*files->list), by_bytes);
	for (size_t i = 0; i < files->n; i++) {
		if (!n || by_bytes(&files->list[n - 1], &files->list[i]))
			files->list[n++] = files->list[i];
	}
	files->n = n;
}

/* Half of the room is to be free after files were sorted, so that this is done seldom. */
static int note_file(const struct mapping *mapping, void *data)
{
	struct inside_files *files = data;

	if (files->n == FILES_MOST) {
		sort_files(files);
		if (files->n > FILES_MOST / 2)
			return 1;
	}
	files->list[files->n++] = (struct inside_file){ mapping->dev, mapping->inode };
	return 0;
}

static void tell_twice(struct inside_process *process, const char *why)
{
	struct inside *inside = process->inside;

	if (process->files.told)
		return;
	process->files.told = true;
	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_OVER_BUDGET, NULL, NULL, process->pid,
	             "calls from %.0f ms on may be told twice, as other files of the same "
	             "functions are hooked: %s",
	             inside_ms(inside, inside->now_ns), why);
	modules_unlock(inside->options.modules);
}

static void list_files(struct inside_process *process)
{
	struct inside_files *files = &process->files;
	uint64_t busy_ns = helper_busy_ns();
	struct err err = { 0 };
	int r;

	files->state = FILES_UNKNOWN;
	files->again_ns = process->inside->now_ns + AGAIN_NS;
	files->n = 0;
	if (look_time_is_over(LOOK_AT_MAPS, process->owner)) {
		tell_twice(process, "its user's time for looks at what processes have mapped is "
		                    "used up");
		return;
	}
	files->list = xrealloc(files->list, FILES_MOST * sizeof(*files->list));
	r = maps_each((pid_t)process->pid, note_file, files, &err);
	sort_files(files);
	files->list = xrealloc(files->list, (files->n + 1) * sizeof(*files->list));
	look_time_charge(LOOK_AT_MAPS, process->owner, helper_busy_ns() - busy_ns);
	if (r > 0)
		tell_twice(process, "it has too many files mapped");
	else if (!r)
		files->state = FILES_LISTED;
}

static bool may_have(struct inside_process *process, const struct module *module)
{
	const struct inside_file file = { module->dev, module->inode };
	const struct inside_files *files = &process->files;

	if (files->state == FILES_STALE)
		list_files(process);
	return files->state == FILES_UNKNOWN ||
	       (files->n && bsearch(&file, files->list, files->n, sizeof(file), by_bytes));
}

uint32_t inside_own_hook(struct inside_module *at, uint32_t id)
{
	const struct module *module = NULL;
	const struct hook *hook =
		modules_hook(at->process->inside->options.modules, (uint16_t)id, &module);

	if (!hook || module == at->module || module->alike != at->module->alike ||
	    may_have(at->process, module))
		return HOOK_NO_ID;
	return at->module->hooks[hook - module->hooks].id;
}

/* Whether any other file that is hooked has the functions of one of its modules. */
static bool has_double(const struct inside_process *process)
{
	const struct wire_state *state = programs_state(process->inside->options.programs);

	for (const struct inside_module *at = process->modules; at; at = at->next) {
		if (at->state == INSIDE_DIVERTED && at->first_id < WIRE_HOOKS_MAX &&
		    state->mode[at->first_id] & HOOK_DOUBLE)
			return true;
	}
	return false;
}

/* While processes are there: when their calls come to be looked at, they may have ended. */
void inside_files_turn(struct inside *inside)
{
	uint64_t begin_ns = 0;

	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		const struct inside_files *files = &process->files;

		if (files->state == FILES_LISTED ||
		    (files->state == FILES_UNKNOWN && inside->now_ns < files->again_ns) ||
		    !has_double(process))
			continue;
		begin_ns = begin_ns ? begin_ns : clock_now_ns();
		list_files(process);
		if (clock_now_ns() - begin_ns > TURN_NS)
			break;
	}
}

void inside_files_forget(struct inside_process *process)
{
	process->files.state = FILES_STALE;
}

void inside_files_free(struct inside_process *process)
{
	free(process->files.list);
}
