// SPDX-License-Identifier: MIT
#include "probe/no_return.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

#define LOOK_BYTES 65536u /* of notes and of data, each */

/* ---- functions ------------------------------------------------------------------------------ */

static const char keeps[] =
	"it keeps its return address for later, when a return probe's would end "
	"the program";
static const char throws[] = "exceptions begin in it, and none gets past a return probe";
static const char asks[] = "it asks who has called it, which a return probe hides";

static const struct {
	const char *symbol, *why;
} functions[] = {
	{ "setjmp", keeps },
	{ "_setjmp", keeps },
	{ "sigsetjmp", keeps },
	{ "__sigsetjmp", keeps },
	{ "getcontext", keeps },
	{ "swapcontext", keeps },
	{ "__cxa_throw", throws },
	{ "__cxa_rethrow", throws },
	{ "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", throws },
	{ "_Unwind_RaiseException", throws },
	{ "_Unwind_Resume_or_Rethrow", throws },
	{ "_Unwind_ForcedUnwind", throws },
	{ "_Unwind_Backtrace", asks },
	{ "backtrace", asks },
	{ "dlopen", asks },
	{ "dlmopen", asks },
	{ "dlsym", asks },
	{ "dlvsym", asks },
};

const char *no_return_for_symbol(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(symbol, functions[i].symbol))
			return functions[i].why;
	return NULL;
}

/* ---- Go ------------------------------------------------------------------------------------- */

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* A note of the owner "Go", which has the build's id. */
static bool has_go_note(const char *at, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;
		size_t all;

		memcpy(&head, at, sizeof(head));
		if (head.n_namesz > bytes || head.n_descsz > bytes)
			return false;
		all = sizeof(head) + padded(head.n_namesz) + padded(head.n_descsz);
		if (all > bytes)
			return false;
		if (head.n_namesz == 4 && !memcmp(at + sizeof(head), "Go\0", 4))
			return true;
		at += all;
		bytes -= all;
	}
	return false;
}

/* What the linker writes before the versions of what was built in, at the begin of the data. */
static bool has_build_info(const char *at, size_t bytes)
{
	static const char magic[] = "\xff Go buildinf:";

	return memmem(at, bytes, magic, sizeof(magic) - 1) != NULL;
}

/* Also of files without section headers. */
static bool is_in_segments(const struct elf_image *image)
{
	char *part = xmalloc(LOOK_BYTES);
	bool found = false;

	for (size_t i = 0; i < image->n_segments && !found; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		size_t n = segment->p_filesz < LOOK_BYTES ? segment->p_filesz : LOOK_BYTES;
		bool data = segment->p_type == PT_LOAD && (segment->p_flags & PF_W);

		if ((!data && segment->p_type != PT_NOTE) || !n ||
		    !elf_image_read(image, segment->p_offset, part, n))
			continue;
		found = data ? has_build_info(part, n) : has_go_note(part, n);
	}
	free(part);
	return found;
}

const char *no_return_for_file(const struct elf_image *image)
{
	static const char *const sections[] = { ".go.buildinfo", ".note.go.buildid", ".gopclntab" };
	bool found = is_in_segments(image);
	Elf64_Shdr section;

	for (size_t i = 0; i < ARRAY_SIZE(sections) && !found; i++)
		found = elf_image_section(image, sections[i], &section);
	return found ? "it is of a file with code of Go, which moves its stacks, and a return "
	               "probe "
	               "would end the program"
	             : NULL;
}
