// SPDX-License-Identifier: MIT
#include "probe/elf_runtime.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "cuda/api.h"

#define HURRIED_BYTES   (16u << 20) /* of read-only data: some 5 ms */
#define DATA_MAX        (64u << 20)
#define CODE_MAX        (256u << 20)
#define STARTS_MAX      (1u << 20) /* functions of a program */
#define REFERENCES_MAX  16384      /* to what may be a name */
#define FUNCTIONS_LEAST 32         /* fewer than that are no runtime's */
#define CHUNK           (1u << 20)
#define LEA_BYTES       7
#define CALL_BYTES      5    /* with 32 bits of distance */
#define BODY_MAX        4096 /* of a function, that are looked through for calls */
#define CALLS_MAX       64   /* of a function */

#define ID_BYTES 16

/* The number, each bit of it turned: this program has the number in no data of its own. */
static const volatile uint8_t turned_id[ID_BYTES] = { 0x94, 0x2a, 0x04, 0x93, 0xa4, 0x0b,
	                                              0x18, 0xb5, 0x76, 0x78, 0x26, 0xc6,
	                                              0xed, 0x02, 0x62, 0x06 };

struct reference {
	uint32_t name;  /* where the text is in the data */
	uint32_t start; /* which function refers to it */
};

struct search {
	const struct elf_image *image;
	Elf64_Shdr section;
	char *data;           /* read-only, with a NUL behind it */
	uint64_t table;       /* address of the table of starts */
	int32_t (*starts)[2]; /* function and its FDE, from there on */
	size_t n_starts;
	struct reference *references;
	size_t n_references;
	size_t tried; /* REFERENCES_MAX: there are more */
};

/* ---- the data ------------------------------------------------------------------------------- */

static bool has_id(const char *data, size_t bytes)
{
	uint8_t id[ID_BYTES];

	for (size_t i = 0; i < ID_BYTES; i++)
		id[i] = (uint8_t)~turned_id[i];
	return memmem(data, bytes, id, ID_BYTES) != NULL;
}

static bool is_program(const struct elf_image *image)
{
	Elf64_Ehdr header;

	for (size_t i = 0; i < image->n_segments; i++)
		if (image->segments[i].p_type == PT_INTERP)
			return true;
	return elf_image_read(image, 0, &header, sizeof(header)) && header.e_type == ET_EXEC;
}

/* 0, 1 for no runtime, 2 for later. */
static int read_data(struct search *search, bool patient)
{
	uint64_t bytes;

	if (!elf_image_section(search->image, ".rodata", &search->section))
		return 1;
	bytes = search->section.sh_size;
	if (search->section.sh_type != SHT_PROGBITS || bytes > search->image->bytes ||
	    bytes > DATA_MAX)
		return 1;
	if (!patient && bytes > HURRIED_BYTES)
		return 2;
	search->data = xcalloc(1, bytes + 1);
	if (!elf_image_read(search->image, search->section.sh_offset, search->data, bytes))
		return 1;
	return has_id(search->data, bytes) ? 0 : 1;
}

/* Whether the text there is the whole name of a function of the runtime. */
static bool is_name(const char *text)
{
	size_t len = strnlen(text, RUNTIME_NAME_MAX);

	if (len == RUNTIME_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return api_is_symbol(text);
}

/* ---- where functions begin ------------------------------------------------------------------- */

/* .eh_frame_hdr: a head, and pairs of 32 bits from there on, in order, if it is as linkers make it.
 */
static bool read_starts(struct search *search)
{
	static const uint8_t head[] = { 1, 0x1b, 0x03, 0x3b };
	const Elf64_Phdr *segment = NULL;
	uint8_t first[12];
	uint32_t n;

	for (size_t i = 0; i < search->image->n_segments && !segment; i++)
		if (search->image->segments[i].p_type == PT_GNU_EH_FRAME)
			segment = &search->image->segments[i];
	if (!segment || !elf_image_read(search->image, segment->p_offset, first, sizeof(first)) ||
	    memcmp(first, head, sizeof(head)))
		return false;
	memcpy(&n, first + 8, sizeof(n));
	if (!n || n > STARTS_MAX || n > (segment->p_filesz - sizeof(first)) / 8)
		return false;
	search->table = segment->p_vaddr;
	search->starts = xmalloc(n * sizeof(*search->starts));
	search->n_starts = n;
	return elf_image_read(search->image, segment->p_offset + sizeof(first), search->starts,
	                      n * sizeof(*search->starts));
}

static uint64_t start_at(const struct search *search, size_t index)
{
	return search->table + (uint64_t)(int64_t)search->starts[index][0];
}

/* The last function that begins at or before an address. */
static size_t start_before(const struct search *search, uint64_t address)
{
	size_t low = ARRAY_BEFORE(search->n_starts, i, start_at(search, i) <= address);

	return low ? low - 1 : SIZE_MAX;
}

/*
 * Its size by its FDE; 0 where that says that the stack is not as at an entry. What holds from the
 * first instruction on is written before anything else, and of an entry that is nothing.
 */
static uint64_t size_of(const struct search *search, size_t index)
{
	uint64_t address = search->table + (uint64_t)(int64_t)search->starts[index][1];
	uint8_t fde[32];
	uint32_t size;
	size_t at = 17;

	if (!elf_image_read_linked(search->image, address, fde, sizeof(fde), false) || fde[16] > 8)
		return 0;
	memcpy(&size, fde + 12, sizeof(size));
	at += fde[16]; /* the augmentation */
	return !fde[at] || (fde[at] & 0xc0) == 0x40 ? size : 0;
}

/* ---- who refers to names --------------------------------------------------------------------- */

/* lea distance(%rip), %register */
static bool is_lea(const uint8_t *code)
{
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 0x05;
}

static bool begins_as_name(const char *text)
{
	return !strncmp(text, "cuda", 4) || !strncmp(text, "__cuda", 6);
}

static void note_reference(struct search *search, uint64_t from, uint64_t to)
{
	uint64_t into = to - search->section.sh_addr;
	size_t start;

	if (to < search->section.sh_addr || into >= search->section.sh_size ||
	    !begins_as_name(search->data + into) || search->tried == REFERENCES_MAX)
		return;
	search->tried++;
	if (!is_name(search->data + into))
		return;
	start = start_before(search, from);
	if (start == SIZE_MAX)
		return;
	search->references =
		vec_room(search->references, search->n_references, sizeof(*search->references));
	search->references[search->n_references++] =
		(struct reference){ (uint32_t)into, (uint32_t)start };
}

static void scan_code(struct search *search, const uint8_t *code, size_t n, uint64_t address)
{
	const uint8_t *at = code + 1, *end = code + n - (LEA_BYTES - 1);

	for (; at < end && (at = memchr(at, 0x8d, (size_t)(end - at))); at++) {
		uint64_t from = address + (uint64_t)(at - 1 - code);
		int32_t distance;

		if (!is_lea(at - 1))
			continue;
		memcpy(&distance, at + 2, sizeof(distance));
		note_reference(search, from, from + LEA_BYTES + (uint64_t)(int64_t)distance);
	}
}

static bool read_code(struct search *search)
{
	AT_END(at_end_free) uint8_t *code = xmalloc(CHUNK);
	uint64_t all = 0;
	bool ok = true;

	for (size_t i = 0; i < search->image->n_segments && ok; i++) {
		const Elf64_Phdr *segment = &search->image->segments[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		all += segment->p_filesz;
		ok = all <= CODE_MAX;
		/* parts meet in what is too short for one more */
		for (uint64_t at = 0; ok && at + LEA_BYTES < segment->p_filesz;
		     at += CHUNK - LEA_BYTES) {
			uint64_t left = segment->p_filesz - at;
			size_t n = left < CHUNK ? left : CHUNK;

			ok = elf_image_read(search->image, segment->p_offset + at, code, n);
			if (ok)
				scan_code(search, code, n, segment->p_vaddr + at);
		}
	}
	return ok && search->tried < REFERENCES_MAX;
}

/* ---- which of them are the runtime's --------------------------------------------------------- */

struct call {
	uint64_t target;
	uint32_t start; /* of who calls */
};

struct calls {
	struct call *list;
	size_t n;
};

ORDER_BY(compare_starts, struct reference, UP(start));

ORDER_BY(compare_calls, struct call, UP(target), UP(start));

/* What a function calls; bytes within instructions may look like calls, of places that nobody else
 * calls. */
static void note_calls(struct search *search, uint32_t start, struct calls *calls)
{
	uint64_t address = start_at(search, start), size = size_of(search, start);
	uint64_t offset = elf_image_offset(search->image, address, size, false);
	uint8_t code[BODY_MAX];
	size_t noted = 0;

	size = size < sizeof(code) ? size : sizeof(code);
	if (!size || !offset || !elf_image_read(search->image, offset, code, size))
		return;
	for (size_t at = 0; at + CALL_BYTES <= size && noted < CALLS_MAX; at++) {
		int32_t distance;

		if (code[at] != 0xe8)
			continue;
		memcpy(&distance, code + at + 1, sizeof(distance));
		calls->list = vec_room(calls->list, calls->n, sizeof(*calls->list));
		calls->list[calls->n++] =
			(struct call){ address + at + CALL_BYTES + (uint64_t)(int64_t)distance,
			               start };
		noted++;
	}
}

/* How many different functions call what the nth call is of; *next is behind those calls. */
static size_t callers_from(const struct calls *calls, size_t n, size_t *next)
{
	size_t callers = 1;

	for (*next = n + 1; *next < calls->n && calls->list[*next].target == calls->list[n].target;
	     ++*next)
		callers += calls->list[*next].start != calls->list[*next - 1].start;
	return callers;
}

/*
 * Each function of the runtime first asks for the runtime's state. So what most of these functions
 * call is that, and those that call it are the runtime's: what a program says in its own messages
 * does not matter. Where others are nearly as many (wrappers of all functions), nothing is known.
 */
static bool keep_runtimes(struct search *search)
{
	struct calls calls = { 0 };
	size_t all = 0, most = 0, from = 0, kept = 0, next, at;

	qsort(search->references, search->n_references, sizeof(*search->references),
	      compare_starts);
	for (size_t i = 0; i < search->n_references; i++) {
		if (i && search->references[i].start == search->references[i - 1].start)
			continue;
		note_calls(search, search->references[i].start, &calls);
		all++;
	}
	if (calls.n)
		qsort(calls.list, calls.n, sizeof(*calls.list), compare_calls);
	for (size_t i = 0; i < calls.n; i = next) {
		size_t callers = callers_from(&calls, i, &next);

		if (callers > most) {
			most = callers;
			from = i;
		}
	}
	at = from; /* both are in order of functions */
	for (size_t i = 0; i < search->n_references && most; i++) {
		uint64_t target = calls.list[from].target;

		while (at < calls.n && calls.list[at].target == target &&
		       calls.list[at].start < search->references[i].start)
			at++;
		if (at < calls.n && calls.list[at].target == target &&
		    calls.list[at].start == search->references[i].start)
			search->references[kept++] = search->references[i];
	}
	search->n_references = kept;
	free(calls.list);
	return most >= FUNCTIONS_LEAST && 2 * (all - most) <= most;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static int compare_references(const void *left, const void *right, void *data)
{
	const struct reference *a = left, *b = right;
	int order = strcmp((const char *)data + a->name, (const char *)data + b->name);

	return order ? order : (a->start > b->start) - (a->start < b->start);
}

/* Those names that one function alone refers to. */
static size_t settle(struct search *search, struct elf_runtime_function *list)
{
	size_t n = 0, next;

	qsort_r(search->references, search->n_references, sizeof(*search->references),
	        compare_references, search->data);
	for (size_t i = 0; i < search->n_references; i = next) {
		const struct reference *first = &search->references[i];
		const char *name = search->data + first->name;
		bool one = true;
		uint64_t size;

		for (next = i + 1; next < search->n_references &&
		                   !strcmp(name, search->data + search->references[next].name);
		     next++)
			one &= search->references[next].start == first->start;
		size = one ? size_of(search, first->start) : 0;
		if (!size)
			continue;
		strcpy(list[n].name, name);
		list[n].address = start_at(search, first->start);
		list[n++].size = size;
	}
	return n;
}

ORDER_BY(compare_functions, struct elf_runtime_function, UP(address));

/* Of a function that refers to several names none is believed. Returns how many are left. */
static size_t drop_doubtful(struct elf_runtime_function *list, size_t n)
{
	size_t kept = 0, next;

	qsort(list, n, sizeof(*list), compare_functions);
	for (size_t i = 0; i < n; i = next) {
		for (next = i + 1; next < n && list[next].address == list[i].address; next++)
			;
		if (next == i + 1)
			list[kept++] = list[i];
	}
	return kept;
}

int elf_runtime_find(const struct elf_image *image, bool patient,
                     struct elf_runtime_function **list, size_t *n)
{
	struct search search = { .image = image };
	int r = is_program(image) ? read_data(&search, patient) : 1;

	*list = NULL;
	*n = 0;
	if (!r)
		r = read_starts(&search) && read_code(&search) ? 0 : -ENOTSUP;
	if (!r && !keep_runtimes(&search))
		r = -ENOTSUP;
	if (!r && search.n_references) {
		*list = xcalloc(search.n_references, sizeof(**list));
		*n = drop_doubtful(*list, settle(&search, *list));
	}
	if (!r && *n < FUNCTIONS_LEAST)
		r = -ENOTSUP;
	if (r) {
		free(*list);
		*list = NULL;
		*n = 0;
	}
	free(search.data);
	free(search.starts);
	free(search.references);
	return r;
}
