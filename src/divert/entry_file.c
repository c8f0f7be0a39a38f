// SPDX-License-Identifier: MIT
#include "divert/entry_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "divert/entry_body.h"
#include "probe/elf_file.h"
#include "probe/elf_image.h"
#include "probe/placement.h"
#include "unwind/frame_find.h"

/* ---- entry module -------------------------------------------------------------------------- */

#define CODE_WINDOW 4096 /* as src/probe/module.c has it */

ORDER_BY(compare_addresses, struct entry_function, UP(address));

ORDER_BY(compare_offsets, struct entry_function, UP(offset));

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

/* ---- entry targets ------------------------------------------------------------------------- */

/*
 * Branches that lead into the first bytes of functions, from anywhere in their file: from the cold
 * parts of functions, which lie elsewhere, and from code that is written by hand.
 *
 * Every byte that could begin call, jmp or jcc with 32 bits of distance is taken for one, so none
 * is missed. Some are found that are none, one in some two thousand functions. Those are known by
 * decoding the function that they are in, where call frame information tells where it begins.
 */

#define SEARCHED_MAX (512ull << 20) /* bytes of code */
#define DECODED_MAX  (8ull << 20)   /* bytes of functions: of libcuda 450 they have 224 KiB */
#define LOOKED_UP    64             /* bytes that could be decoded while a segment is found */
#define PART         (256u << 10)
#define BRANCH_MAX   6  /* bytes: 0f 8x and the distance */
#define FIRST_BYTES  32 /* bits of entry_targets_take; entry_move.h writes 24 at most */
#define GRAIN        32 /* bytes of code for one bit of near_entry */
#define HITS_MAX     65536

#define EACH_BYTE(byte) (0x0101010101010101ull * (byte))

/* What may be a branch: where it ends, and which byte of which function it leads to. */
struct targets_hit {
	uint64_t end;
	uint32_t function;
	uint8_t offset;
	bool forgotten;
};

struct entry_targets {
	const struct entry_function *functions;
	size_t count;
	uint8_t *near_entry; /* a bit for each GRAIN bytes from the first function to the last */
	uint64_t base, grains;
	struct targets_hit *hits; /* in order of their end, once the search is over */
	size_t n_hits;
	uint32_t *unconfirmed; /* of each function: those for which there was no room */
	uint64_t decoded;
};

/* `functions` are sorted by address, and stay the caller's. */
static struct entry_targets *entry_targets_new(const struct entry_function *functions, size_t count)
{
	struct entry_targets *targets = xcalloc(1, sizeof(*targets));
	uint64_t last = count ? functions[count - 1].address : 0;

	targets->functions = functions;
	targets->count = count;
	targets->unconfirmed = xcalloc(count + 1, sizeof(*targets->unconfirmed));
	targets->base = count ? functions[0].address : 0;
	/* Functions that lie farther apart than the code that is searched are no real ones. */
	if (!count || last - targets->base > SEARCHED_MAX)
		return targets;
	targets->grains = (last - targets->base + FIRST_BYTES) / GRAIN + 1;
	targets->near_entry = xcalloc(targets->grains / 8 + 1, 1);
	for (size_t i = 0; i < count; i++) {
		uint64_t from = functions[i].address - targets->base;

		for (uint64_t g = from / GRAIN; g <= (from + FIRST_BYTES - 1) / GRAIN; g++)
			targets->near_entry[g / 8] |= (uint8_t)(1u << g % 8);
	}
	return targets;
}

static void entry_targets_free(struct entry_targets *targets)
{
	if (!targets)
		return;
	free(targets->near_entry);
	free(targets->hits);
	free(targets->unconfirmed);
	free(targets);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The last function that begins at or before an address; there is one. */
static size_t function_before(const struct entry_targets *targets, uint64_t address)
{
	size_t low = 0, high = targets->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (targets->functions[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void note_hit(struct entry_targets *targets, uint64_t end, uint64_t target)
{
	uint64_t grain = (target - targets->base) / GRAIN, offset;
	size_t i;

	if (target < targets->base || grain >= targets->grains ||
	    !(targets->near_entry[grain / 8] >> grain % 8 & 1))
		return;
	i = function_before(targets, target);
	offset = target - targets->functions[i].address;
	if (!offset || offset >= FIRST_BYTES)
		return;
	if (targets->n_hits == HITS_MAX) {
		targets->unconfirmed[i] |= 1u << offset;
		return;
	}
	targets->hits = vec_room(targets->hits, targets->n_hits, sizeof(*targets->hits));
	targets->hits[targets->n_hits++] = (struct targets_hit){ .end = end,
		                                                 .function = (uint32_t)i,
		                                                 .offset = (uint8_t)offset };
}

/* Where a byte of `bytes` is 0, its highest bit; bits above such a one mean nothing. */
static uint64_t zero_bytes(uint64_t bytes)
{
	return (bytes - EACH_BYTE(0x01)) & ~bytes & EACH_BYTE(0x80);
}

/* The same of bytes that may begin a branch. `next` is what follows each of them. */
static uint64_t branches_in(uint64_t bytes, uint64_t next)
{
	return zero_bytes((bytes & EACH_BYTE(0xfe)) ^ EACH_BYTE(0xe8)) |
	       (zero_bytes(bytes ^ EACH_BYTE(0x0f)) &
	        zero_bytes((next & EACH_BYTE(0xf0)) ^ EACH_BYTE(0x80)));
}

static void search_byte(struct entry_targets *targets, const uint8_t *code, size_t bytes, size_t at,
                        uint64_t address)
{
	size_t distance_at;
	int32_t distance;

	if ((code[at] & 0xfe) == 0xe8)
		distance_at = at + 1;
	else if (code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80)
		distance_at = at + 2;
	else
		return;
	if (distance_at + sizeof(distance) > bytes)
		return;
	memcpy(&distance, code + distance_at, sizeof(distance));
	note_hit(targets, address + distance_at + sizeof(distance),
	         address + distance_at + sizeof(distance) + (uint64_t)(int64_t)distance);
}

/* Eight bytes at a time: of libnccl 200 MB are mapped as code, most of which is code of GPUs. */
static void search_part(struct entry_targets *targets, const uint8_t *code, size_t bytes,
                        uint64_t address)
{
	uint64_t here, next, found;
	size_t at;

	for (at = 0; at + sizeof(here) < bytes; at += sizeof(here)) {
		memcpy(&here, code + at, sizeof(here));
		memcpy(&next, code + at + 1, sizeof(next));
		for (found = branches_in(here, next); found; found &= found - 1)
			search_byte(targets, code, bytes, at + (size_t)__builtin_ctzll(found) / 8,
			            address);
	}
	for (; at + 1 < bytes; at++)
		search_byte(targets, code, bytes, at, address);
}

/* Parts overlap by all but one byte of the longest branch: some are found twice. */
static void search_segment(struct entry_targets *targets, const struct elf_image *image,
                           const Elf64_Phdr *segment, uint64_t bytes, uint8_t *part)
{
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t n = bytes - at < PART ? bytes - at : PART;

		if (segment->p_offset > UINT64_MAX - at ||
		    !elf_image_read(image, segment->p_offset + at, part, n))
			break;
		search_part(targets, part, n, segment->p_vaddr + at);
		if (n < PART)
			break;
		at += n - (BRANCH_MAX - 1);
	}
}

ORDER_BY(compare_hits, struct targets_hit, UP(end));

/* Looks through all code of the file, up to 512 MiB. */
static void entry_targets_search(struct entry_targets *targets, const struct elf_image *image)
{
	uint64_t left = SEARCHED_MAX;
	uint8_t *part;

	if (!targets->grains)
		return;
	part = xmalloc(PART);
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t bytes = segment->p_filesz < left ? segment->p_filesz : left;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		left -= bytes;
		search_segment(targets, image, segment, bytes, part);
	}
	free(part);
	if (targets->n_hits)
		qsort(targets->hits, targets->n_hits, sizeof(*targets->hits), compare_hits);
}

/* ---- which of them are no branches ----------------------------------------------------------- */

/* The first hit that ends behind an address. */
static size_t first_behind(const struct entry_targets *targets, uint64_t address)
{
	return ARRAY_BEFORE(targets->n_hits, i, targets->hits[i].end <= address);
}

/* Instructions from the function's begin on, as far as all of them decode. */
static void targets_decode(struct entry_targets *targets, size_t hit, const uint8_t *code,
                           size_t bytes, uint64_t start)
{
	struct entry_instruction instruction;
	ZydisDecoder decoder;
	size_t at = 0;

	entry_decoder_init(&decoder);
	while (hit < targets->n_hits && targets->hits[hit].end <= start + bytes &&
	       entry_decode(&decoder, code, bytes, at, &instruction)) {
		uint64_t end = start + at + instruction.raw.length;

		/* A branch ends where its distance does. */
		for (; hit < targets->n_hits && targets->hits[hit].end <= end; hit++)
			if (!instruction.has_target || targets->hits[hit].end != end)
				targets->hits[hit].forgotten = true;
		at += instruction.raw.length;
	}
}

/*
 * For each function of the file, at linked addresses [start, end): forgets what was found there and
 * lies within an instruction that is no branch. Decodes 8 MiB at most.
 */
static void entry_targets_confirm(struct entry_targets *targets, const struct elf_image *image,
                                  uint64_t start, uint64_t end)
{
	size_t hit = first_behind(targets, start);
	uint8_t *code;

	if (hit == targets->n_hits || targets->hits[hit].end > end || end <= start)
		return;
	if (end - start > ENTRY_FUNCTION_MAX || targets->decoded >= DECODED_MAX)
		return;
	targets->decoded += end - start + LOOKED_UP; /* a file may have thousands of segments */
	code = xmalloc(end - start);
	if (elf_image_read_linked(image, start, code, end - start, true))
		targets_decode(targets, hit, code, end - start, start);
	free(code);
}

/* For each function: bit N for a branch to N bytes behind its entry, N from 1 to 31. */
static void entry_targets_take(const struct entry_targets *targets, uint32_t *bits)
{
	for (size_t i = 0; i < targets->count; i++)
		bits[i] = targets->unconfirmed[i];
	for (size_t i = 0; i < targets->n_hits; i++)
		if (!targets->hits[i].forgotten)
			bits[targets->hits[i].function] |= 1u << targets->hits[i].offset;
}

/* ---- entry file ---------------------------------------------------------------------------- */

#define FRAMES_MAX (64u << 20) /* bytes of .eh_frame: libtorch has 40 MiB */
#define PADDING    16          /* bytes that are read behind a function */

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
	return (ptrdiff_t)ARRAY_BEFORE(file->count, i, file->functions[i].address <= address) - 1;
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
