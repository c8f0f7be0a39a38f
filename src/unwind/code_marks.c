// SPDX-License-Identifier: MIT
#include "unwind/code_marks.h"

#include <string.h>

#include "base/clock.h"
#include "bpf/wire.h"
#include "probe/account.h"
#include "probe/elf_image.h"

#define PROBES_OF_USER    16
#define PROBES_OF_PROCESS 2

void code_marks_init(struct code_marks *marks, code_tables_marked marked, void *data)
{
	*marks = (struct code_marks){
		.marked = marked,
		.data = data,
		.shares = { .process = { .most = PROBES_OF_PROCESS },
		            .user = { .most = PROBES_OF_USER },
		            .all = { .most = CODE_MARKS_PROBES } },
	};
}

/*
 * PyTorch's backward pass begins here, in the thread that asks for it, and is run by others: 2.x.
 */
#define ENGINE_EXECUTE                                                                             \
	"_ZN5torch8autograd6python12PythonEngine7executeERKSt6vectorINS0_4EdgeESaIS4_EERKS3_IN2at" \
	"6TensorESaISA_EEbbbS8_"

/* PyTorch does not export it: it is among all symbols of one file, which have 10 MB of names. */
static bool find_engine_symbol(const struct elf_image *image, const char *path, Elf64_Sym *found)
{
	const char *slash = strrchr(path, '/');
	struct elf_symbols symbols;

	if (!elf_symbols_dynamic(image, &symbols) &&
	    elf_symbols_find(image, &symbols, ENGINE_EXECUTE, false, found) == 1)
		return true;
	return slash && !strncmp(slash + 1, "libtorch_python", 15) &&
	       !elf_symbols_static(image, &symbols) &&
	       elf_symbols_find(image, &symbols, ENGINE_EXECUTE, false, found) == 1;
}

static bool find_walk_symbol(const struct elf_image *image, Elf64_Sym *found)
{
	struct elf_symbols symbols;

	return !elf_symbols_dynamic(image, &symbols) &&
	       elf_symbols_find(image, &symbols, WIRE_WALK_FUNCTION, false, found) == 1;
}

void code_mark_find(const struct code_marks *marks, struct marked_place *place,
                    const struct elf_image *image, const char *path)
{
	Elf64_Sym found;

	if (!marks->marked)
		return;
	place->mark = CODE_WALKS;
	if (!find_walk_symbol(image, &found)) {
		if (!find_engine_symbol(image, path, &found))
			return;
		place->mark = CODE_BACKWARD;
	}
	place->at = elf_image_offset(image, found.st_value, 1, true);
}

void code_mark_probe(struct code_marks *marks, struct marked_place *place, pid_t pid,
                     uint64_t person, int fd)
{
	uint64_t begin_ns = clock_now_ns();

	if (place->at && place->probe >= 0)
		marks->marked(marks->data, pid, place->mark, -1, place->at);
	if (!place->at || place->probe >= 0 || look_time_is_over(LOOK_AT_TABLES, person))
		return;
	if (quota_take(&marks->shares, person, (uint32_t)pid, 1)) {
		marks->refused++;
		return;
	}
	place->person = person;
	place->pid = (uint32_t)pid;
	place->probe = marks->marked(marks->data, pid, place->mark, fd, place->at);
	if (place->probe < 0)
		quota_give(&marks->shares, person, (uint32_t)pid, 1);
	look_time_charge(LOOK_AT_TABLES, person, clock_now_ns() - begin_ns);
}

void code_mark_closed(struct code_marks *marks, struct marked_place *place)
{
	if (place->probe >= 0)
		quota_give(&marks->shares, place->person, place->pid, 1);
	place->probe = -1;
}

void code_facts_find(struct code_facts *facts, const struct elf_image *image)
{
	struct elf_symbols symbols;
	Elf64_Sym found;
	uint32_t words[3]; /* bits, count, offset */

	if (elf_symbols_dynamic(image, &symbols))
		return;
	if (elf_symbols_find(image, &symbols, "_PyRuntime", true, &found) == 1) {
		facts->python_runtime = found.st_value;
		if (elf_symbols_find(image, &symbols, "Py_Version", true, &found) == 1)
			elf_image_read_linked(image, found.st_value, &facts->python_version,
			                      sizeof(facts->python_version), false);
	}
	if (elf_symbols_find(image, &symbols, "_thread_db_pthread_specific", true, &found) == 1 &&
	    elf_image_read_linked(image, found.st_value, words, sizeof(words), false))
		facts->specific_offset = words[2];
}
