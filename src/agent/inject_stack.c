// SPDX-License-Identifier: MIT
#include "agent/inject_stack.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"
#include "stack/function_table.h"
#include "unwind/frame_find.h"

/* A file with larger tables is walked in as far as these tell, all files together. */
#define TABLES_BYTES ((size_t)32 << 20)
#define DEPTH_MAX    2048
#define STUB_NAME    "[uprobes]" /* where calls return to that have a return probe */

struct stack_file {
	dev_t dev;
	uint64_t inode;
	bool read;
	bool c_library, loader;
	bool allocator; /* it brings a malloc of its own */
	struct elf_image image;
	struct frame_find find;
	struct function_table *functions; /* NULL: not to be had */
};

struct stack_mapping {
	struct mapping mapping; /* its path is a copy */
	size_t file;            /* SIZE_MAX: none */
};

struct thread_stacks {
	struct stack_mapping *at;
	size_t n;
	struct stack_file *files;
	size_t n_files;
	size_t bytes;   /* of tables */
	size_t missing; /* the mapping whose file is to be read */
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* What is put before the names of an allocator's functions: glibc's own ones, jemalloc's,
 * gperftools', mimalloc's, sanitizers'. */
static const char *without_prefix(const char *name)
{
	static const char *const prefixes[] = { "__libc_", "__GI_", "__interceptor_", "je_", "tc_",
		                                "mi_",     "_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		while (begins(name, prefixes[i]))
			name += strlen(prefixes[i]);
	}
	return name;
}

/* fork has the locks of all libraries that asked for it, the allocator's and the loader's too. */
bool thread_stacks_name_holds(const char *name)
{
	static const char *const whole[] = {
		"malloc",         "calloc",
		"realloc",        "reallocarray",
		"free",           "cfree",
		"memalign",       "valloc",
		"pvalloc",        "aligned_alloc",
		"posix_memalign", "malloc_trim",
		"mallopt",        "malloc_usable_size",
		"int_malloc",     "int_free",
		"dlopen",         "dlopen_mode",
		"dlmopen",        "dlclose",
		"dlsym",          "dlvsym",
		"dladdr",         "dladdr1",
		"dlerror",        "dlinfo",
		"fork",           "dl_iterate_phdr",
	};
	static const char *const begin[] = { "_Znw", "_Zna",    "_Zdl",     "_Zda",
		                             "_dl_", "malloc_", "je_malloc" };
	static const char *const within[] = { "tcmalloc", "jemalloc", "mimalloc" };
	const char *rest = without_prefix(name);

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		if (!strcmp(rest, whole[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(begin); i++) {
		if (begins(name, begin[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(within); i++) {
		if (strstr(name, within[i]))
			return true;
	}
	return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static size_t file_of(struct thread_stacks *stacks, const struct mapping *mapping)
{
	const char *name = base_name(mapping->path);
	struct stack_file *file;

	if (!mapping->inode)
		return SIZE_MAX;
	for (size_t i = 0; i < stacks->n_files; i++) {
		if (stacks->files[i].inode == mapping->inode &&
		    stacks->files[i].dev == mapping->dev)
			return i;
	}
	file = &stacks->files[stacks->n_files];
	*file = (struct stack_file){
		.dev = mapping->dev,
		.inode = mapping->inode,
		.loader = begins(name, "ld-") || begins(name, "ld.so") || begins(name, "libdl"),
		.c_library = begins(name, "libc.so") || begins(name, "libc-2."),
	};
	return stacks->n_files++;
}

struct thread_stacks *thread_stacks_new(const struct mapping *mappings, size_t n)
{
	struct thread_stacks *stacks = xcalloc(1, sizeof(*stacks));

	stacks->at = xcalloc(n ? n : 1, sizeof(*stacks->at));
	stacks->files = xcalloc(n ? n : 1, sizeof(*stacks->files));
	stacks->missing = SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		stacks->at[i].mapping = mappings[i];
		stacks->at[i].mapping.path = xstrdup(mappings[i].path);
		stacks->at[i].file = file_of(stacks, &mappings[i]);
	}
	stacks->n = n;
	return stacks;
}

void thread_stacks_free(struct thread_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < stacks->n; i++)
		free((char *)stacks->at[i].mapping.path);
	for (size_t i = 0; i < stacks->n_files; i++) {
		struct stack_file *file = &stacks->files[i];

		frame_find_free(&file->find);
		function_table_free(file->functions);
		free(file->image.segments);
	}
	free(stacks->files);
	free(stacks->at);
	free(stacks);
}

static bool defines_malloc(const struct elf_image *image)
{
	struct elf_symbols symbols;

	return !elf_symbols_dynamic(image, &symbols) &&
	       elf_symbols_find(image, &symbols, "malloc", false, NULL) == 1;
}

/* Functions of the C library, and of who brings an allocator, matter by name; of others none does.
 * The segments are kept; the file need not be open for them. */
static void read_tables(struct thread_stacks *stacks, struct stack_file *file, int fd)
{
	if (elf_image_open(&file->image, fd, "a library", NULL))
		return;
	file->allocator = !file->c_library && defines_malloc(&file->image);
	if (frame_find_read(&file->image, TABLES_BYTES - stacks->bytes, &file->find))
		stacks->bytes += file->find.bytes;
	close(file->image.fd);
	file->image.fd = -1;
	if (!file->allocator && !file->c_library)
		return;
	if (function_table_open(fd, "a library", NULL, &file->functions, NULL))
		file->functions = NULL;
	if (file->functions &&
	    function_table_bytes(file->functions) > TABLES_BYTES - stacks->bytes) {
		function_table_free(file->functions);
		file->functions = NULL;
	}
	stacks->bytes += file->functions ? function_table_bytes(file->functions) : 0;
}

void thread_stacks_read(struct thread_stacks *stacks, pid_t pid)
{
	struct stack_mapping *mapping = &stacks->at[stacks->missing];
	struct stack_file *file = &stacks->files[mapping->file];
	AT_END(at_end_close) int fd = mapping_open(pid, &mapping->mapping, NULL);

	file->read = true;
	if (fd < 0)
		return;
	read_tables(stacks, file, fd);
}

/* ---- one place ------------------------------------------------------------------------------- */

static const struct stack_mapping *mapping_at(const struct thread_stacks *stacks, uint64_t pc)
{
	size_t low = 0, high = stacks->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (stacks->at[middle].mapping.end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < stacks->n && stacks->at[low].mapping.start <= pc ? &stacks->at[low] : NULL;
}

/* The address as linked; false: no segment of the file has it. */
static bool linked_at(const struct elf_image *image, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *s = &image->segments[i];

		if (s->p_type != PT_LOAD || offset < s->p_offset ||
		    offset - s->p_offset >= s->p_filesz)
			continue;
		*address = offset - s->p_offset + s->p_vaddr;
		return true;
	}
	return false;
}

/* Where a library brings its own malloc, functions without names may be that. */
static bool holds(const struct stack_file *file, uint64_t offset)
{
	struct function_found found;

	if (file->loader)
		return true;
	if (!file->functions || function_table_find(file->functions, offset, &found))
		return file->allocator;
	return thread_stacks_name_holds(found.name);
}

/* ---- the walk -------------------------------------------------------------------------------- */

struct walk {
	int memory;
	struct stack_registers at;
	bool innermost;
};

static bool read_word(const struct walk *walk, uint64_t address, uint64_t *word)
{
	return pread(walk->memory, word, sizeof(*word), (off_t)address) == sizeof(*word);
}

/* bpf/stacks.h does the same in the kernel. */
static bool cfa_of(const struct walk *walk, const struct wire_rule *rule, uint64_t *cfa)
{
	const struct stack_registers *at = &walk->at;

	switch (rule->cfa_kind) {
	case CFA_SP:
		*cfa = at->sp + (uint64_t)(int64_t)rule->cfa;
		return true;
	case CFA_FP:
		*cfa = at->fp + (uint64_t)(int64_t)rule->cfa;
		return true;
	case CFA_PLT:
		*cfa = at->sp + ((at->pc & 15) >= (uint32_t)rule->cfa ? 16 : 8);
		return true;
	case CFA_R10:
		*cfa = at->r10 + (uint64_t)(int64_t)rule->cfa;
		return walk->innermost;
	case CFA_AT_SP:
	case CFA_AT_FP:
		if (!read_word(walk,
		               (rule->cfa_kind == CFA_AT_SP ? at->sp : at->fp) +
		                       (uint64_t)(int64_t)rule->cfa,
		               cfa))
			return false;
		*cfa += (uint64_t)(int64_t)rule->add;
		return true;
	}
	return false;
}

static bool to_caller(struct walk *walk, const struct wire_rule *rule)
{
	struct stack_registers *at = &walk->at;
	uint64_t cfa, back, fp = at->fp;

	if (!cfa_of(walk, rule, &cfa) || cfa <= at->sp || !read_word(walk, cfa - 8, &back))
		return false;
	if (rule->fp_kind == FP_CFA || rule->fp_kind == FP_AT_FP) {
		if (!read_word(walk,
		               (rule->fp_kind == FP_CFA ? cfa : at->fp) +
		                       (uint64_t)(int64_t)rule->fp,
		               &fp))
			return false;
	}
	*at = (struct stack_registers){ .pc = back, .sp = cfa, .fp = fp };
	walk->innermost = false;
	return true;
}

/* One frame: STACK_LATER and `*on` where the walk goes on. */
static enum stack_tells look_at_frame(struct thread_stacks *stacks, struct walk *walk, bool *on)
{
	uint64_t place = walk->at.pc - !walk->innermost, offset, linked;
	const struct stack_mapping *mapping = mapping_at(stacks, place);
	struct wire_rule rule;
	struct stack_file *file;

	*on = false;
	if (!mapping ||
	    mapping->file == SIZE_MAX) /* behind a probe are its call, and who made it */
		return mapping && !strcmp(mapping->mapping.path, STUB_NAME) ? STACK_FREE
		                                                            : STACK_UNKNOWN;
	file = &stacks->files[mapping->file];
	if (!file->read) {
		stacks->missing = (size_t)(mapping - stacks->at);
		return STACK_LATER;
	}
	offset = place - mapping->mapping.start + mapping->mapping.offset;
	if (holds(file, offset))
		return STACK_HOLDS;
	if (!linked_at(&file->image, offset, &linked) ||
	    !frame_find_rule(&file->find, linked, &rule))
		return STACK_UNKNOWN;
	if (rule.cfa_kind == CFA_STOP)
		return STACK_FREE;
	*on = to_caller(walk, &rule);
	return STACK_UNKNOWN;
}

enum stack_tells thread_stacks_look(struct thread_stacks *stacks, int memory,
                                    const struct stack_registers *registers)
{
	struct walk walk = { .memory = memory, .at = *registers, .innermost = true };
	enum stack_tells tells = STACK_FREE;
	bool on = true;

	for (int i = 0; on && i < DEPTH_MAX; i++) {
		tells = look_at_frame(stacks, &walk, &on);
		if (on && !walk.at.pc)
			return STACK_FREE;
	}
	return tells;
}
