// SPDX-License-Identifier: MIT
#include "divert/entry_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "divert/entry_targets.h"
#include "probe/elf_image.h"
#include "unwind/frame_section.h"

#define DECODED_MAX (8ull << 20) /* bytes of functions: of libcuda 450 they have 224 KiB */
#define FRAMES_MAX  (64u << 20)  /* bytes of .eh_frame: libtorch has 40 MiB */
#define PADDING     16           /* bytes that are read behind a function */

struct known {
	uint64_t next_start, fde_size;
};

struct entry_file {
	struct elf_image image;
	struct entry_function *functions;
	struct known *known; /* of each function */
	size_t count;
	struct entry_targets *targets;
	uint32_t *jumped_to; /* as entry_targets_take says */
	uint64_t end;        /* of the segments, as linked */
	uint8_t *
		near_entry; /* a bit for each GRAIN bytes between the first and the last function */
	uint64_t base, grains;
};

/* ---- what is known of a function's first bytes ----------------------------------------------- */

/* The last function that begins at or before an address; -1: none. */
static ptrdiff_t function_at(const struct entry_file *file, uint64_t address)
{
	size_t low = 0, high = file->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return (ptrdiff_t)low - 1;
}

static void keep_nearest(uint64_t *nearest, uint64_t distance)
{
	if (distance && (!*nearest || distance < *nearest))
		*nearest = distance;
}

static void note_start(struct entry_file *file, uint64_t address)
{
	ptrdiff_t i = function_at(file, address);

	/* One that begins where a function does ends the one before it. */
	if (i > 0 && file->functions[i].address == address)
		keep_nearest(&file->known[i - 1].next_start,
		             address - file->functions[i - 1].address);
	if (i >= 0)
		keep_nearest(&file->known[i].next_start, address - file->functions[i].address);
}

static int note_symbol(const Elf64_Sym *symbol, void *data)
{
	note_start(data, symbol->st_value);
	return 0;
}

static void note_symbols(struct entry_file *file)
{
	struct elf_symbols symbols;

	for (size_t i = 0; i < file->count; i++)
		note_start(file, file->functions[i].address);
	if (!elf_symbols_dynamic(&file->image, &symbols))
		elf_symbols_each(&file->image, &symbols, note_symbol, file);
	if (!elf_symbols_static(&file->image, &symbols))
		elf_symbols_each(&file->image, &symbols, note_symbol, file);
}

static void note_fde(struct entry_file *file, const struct cfi_section *section,
                     const struct cfi_entry *entry)
{
	struct cfi_cie cie;
	struct cfi_fde fde;
	ptrdiff_t i;

	if (!cfi_cie_read(section, entry->cie, &cie) || !cfi_fde_read(section, entry, &cie, &fde))
		return;
	note_start(file, fde.start);
	entry_targets_confirm(file->targets, &file->image, fde.start, fde.end);
	i = function_at(file, fde.start);
	if (i >= 0 && file->functions[i].address == fde.start && fde.end > fde.start &&
	    fde.end - fde.start > file->known[i].fde_size)
		file->known[i].fde_size = fde.end - fde.start;
}

static void note_frames(struct entry_file *file)
{
	struct cfi_section section;
	struct frame_section found;
	struct cfi_entry entry;
	size_t at = 0;

	if (!frame_section_find(&file->image, &found))
		return;
	if (!frame_section_read(&file->image, &found,
	                        found.bytes < FRAMES_MAX ? found.bytes : FRAMES_MAX, &section))
		return;
	for (;;) {
		entry = cfi_entry_at(&section, at);
		if (entry.kind == CFI_END || entry.next <= at)
			break;
		if (entry.kind == CFI_FDE)
			note_fde(file, &section, &entry);
		at = entry.next;
	}
	free((void *)section.data);
}

/* ---- the answers ----------------------------------------------------------------------------- */

static void find_end(struct entry_file *file)
{
	for (size_t i = 0; i < file->image.n_segments; i++) {
		const Elf64_Phdr *segment = &file->image.segments[i];

		if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > file->end)
			file->end = segment->p_vaddr + segment->p_memsz;
	}
}

/* Its bytes, and as many behind them as the file has. NULL where it has not all of its own. */
static uint8_t *read_code(const struct entry_file *file, uint64_t address, uint64_t size,
                          size_t *bytes)
{
	const Elf64_Phdr *segment = elf_image_segment(&file->image, address, size);
	uint64_t into, room;
	uint8_t *code;

	if (!segment)
		return NULL;
	into = address - segment->p_vaddr;
	room = segment->p_filesz - into;
	*bytes = size + PADDING < room ? size + PADDING : room;
	code = xmalloc(*bytes);
	if (elf_image_read(&file->image, segment->p_offset + into, code, *bytes))
		return code;
	free(code);
	return NULL;
}

static void judge(const struct entry_file *file, size_t i, uint64_t *left)
{
	struct entry_function *function = &file->functions[i];
	const struct known *known = &file->known[i];
	const struct entry_places places = { .pad = file->end + (1u << 20),
		                             .moved = file->end + (2u << 20) };
	struct entry_code code = { .abi = ABI_NATIVE,
		                   .size = function->size,
		                   .address = function->address,
		                   .next_start = known->next_start,
		                   .targets = file->jumped_to[i],
		                   .probed = function->probed,
		                   .probe = function->probe };
	struct entry_move move = { 0 };
	uint8_t *bytes = NULL;

	if (known->fde_size > code.size)
		code.size = known->fde_size;
	function->known_size = code.size;
	function->next_start = code.next_start;
	function->targets = code.targets;
	if (code.size && code.size <= ENTRY_FUNCTION_MAX && code.size <= *left) {
		*left -= code.size;
		bytes = read_code(file, code.address, code.size, &code.bytes);
	} else if (code.size) {
		code.size = ENTRY_FUNCTION_MAX + 1;
	}
	code.memory = code.file = bytes;
	entry_move(&code, &places, &move);
	function->refusal = move.refusal;
	function->refused_at = move.refused_at;
	function->jump = move.jump;
	function->skip = move.skip;
	function->bytes = move.bytes;
	if (!function->keep || move.refusal) {
		free(bytes);
		return;
	}
	function->code = bytes;
	function->code_bytes = code.bytes;
}

int entry_file_judge(int fd, const char *what, struct entry_function *functions, size_t count,
                     struct err *err)
{
	struct entry_file file = { .functions = functions, .count = count };
	uint64_t left = DECODED_MAX;
	int rc = elf_image_open(&file.image, fd, what, err);

	if (rc || !count) {
		if (!rc)
			elf_image_close(&file.image);
		return rc;
	}
	file.known = xcalloc(count, sizeof(*file.known));
	file.jumped_to = xcalloc(count, sizeof(*file.jumped_to));
	file.targets = entry_targets_new(functions, count);
	note_symbols(&file);
	entry_targets_search(file.targets, &file.image);
	note_frames(&file);
	entry_targets_take(file.targets, file.jumped_to);
	find_end(&file);
	for (size_t i = 0; i < count; i++)
		judge(&file, i, &left);
	free(file.known);
	free(file.jumped_to);
	entry_targets_free(file.targets);
	elf_image_close(&file.image);
	return 0;
}
