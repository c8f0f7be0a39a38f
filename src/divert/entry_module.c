// SPDX-License-Identifier: MIT
#include "divert/entry_module.h"

#include <errno.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "probe/elf_file.h"
#include "probe/placement.h"

#define CODE_WINDOW 4096 /* as src/probe/module.c has it */

static int compare_addresses(const void *left, const void *right)
{
	const struct entry_function *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_offsets(const void *left, const void *right)
{
	const struct entry_function *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Where a hook's probe lies. */
static uint32_t probe_of(const struct elf_file *file, const struct elf_function *function)
{
	const struct emulation emulation = { .nop5 = false };
	struct placement placement;
	size_t len = CODE_WINDOW;
	const uint8_t *code = elf_file_bytes(file, function->offset, &len);

	placement_choose(code, len, function->size, ABI_NATIVE, &emulation, &placement);
	return placement.skip;
}

int entry_module_judge(int fd, const char *what, struct entry_function **functions, size_t *count,
                       struct err *err)
{
	const struct elf_function *listed;
	struct entry_function *asked;
	struct elf_file *file;
	size_t n;
	int rc = elf_file_open(fd, what, ELF_WHOLE, &file, err);

	*functions = NULL;
	*count = 0;
	if (rc)
		return rc < 0 ? rc : err_set(err, ENOENT, "%s holds no CUDA functions", what);
	n = elf_file_functions(file, &listed);
	asked = xcalloc(n + 1, sizeof(*asked));
	for (size_t i = 0; i < n; i++)
		asked[i] = (struct entry_function){ .address = listed[i].address,
			                            .offset = listed[i].offset,
			                            .size = listed[i].size,
			                            .probed = true,
			                            .probe = probe_of(file, &listed[i]) };
	elf_file_free(file);
	qsort(asked, n, sizeof(*asked), compare_addresses);
	rc = entry_file_judge(fd, what, asked, n, err);
	if (rc) {
		free(asked);
		return rc;
	}
	qsort(asked, n, sizeof(*asked), compare_offsets);
	*functions = asked;
	*count = n;
	return 0;
}
