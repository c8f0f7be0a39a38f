// SPDX-License-Identifier: MIT
/* The symbol tables of an ELF file: functions by name, and names by address. */
#include "base/order.h"
#include "probe/elf_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

/*
 * Bounds on what one file may cost. The largest real symbol tables (browsers, PyTorch) hold a few
 * million symbols, hash chains a handful of entries. Each entry is three reads in three places: of
 * a file that the helper reads (probe/helper.h) 0.2 ms.
 */
#define SECTIONS_MAX (1u << 20)
#define SYMBOLS_MAX  (1u << 24)
#define DYNAMIC_MAX  4096
#define STRINGS_MAX  (1ull << 30)
#define CHAIN_MAX    1024
#define PLACES_MAX   256 /* of one name in the strings of one table */
#define CHUNK        (64 * 1024)

/* ---- finding the tables ---------------------------------------------------------------------- */

struct dynamic {
	uint64_t symbols, strings, strings_bytes, gnu_hash, sysv_hash;
};

static void note_dynamic(struct dynamic *dynamic, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		dynamic->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		dynamic->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		dynamic->strings_bytes = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		dynamic->sysv_hash = entry->d_un.d_ptr;
		break;
	}
}

static bool read_dynamic(const struct elf_image *image, const Elf64_Phdr *segment,
                         struct dynamic *dynamic)
{
	size_t total = segment->p_filesz / sizeof(Elf64_Dyn), n;
	Elf64_Dyn part[64];

	for (size_t i = 0; i < total && i < DYNAMIC_MAX; i += n) {
		n = total - i < 64 ? total - i : 64;
		if (!elf_image_read(image, segment->p_offset + i * sizeof(*part), part,
		                    n * sizeof(*part)))
			return false;
		for (size_t k = 0; k < n; k++) {
			if (part[k].d_tag == DT_NULL)
				return true;
			note_dynamic(dynamic, &part[k]);
		}
	}
	return true;
}

/* Symbols in a GNU hash table: those before the first hashed one, and on to the end of the last
 * chain. */
static bool gnu_hash_count(const struct elf_image *image, uint64_t at, uint64_t *count)
{
	uint32_t head[4], part[CHUNK / 4], last = 0, n;
	uint64_t chains;

	if (!elf_image_read(image, at, head, sizeof(head)))
		return false;
	at += sizeof(head) + head[2] * 8ull; /* over the Bloom filter */
	chains = at + head[0] * 4ull;
	if (head[0] > SYMBOLS_MAX || chains > image->bytes)
		return false;
	for (uint32_t left = head[0]; left; left -= n, at += n * 4ull) {
		n = left < CHUNK / 4 ? left : CHUNK / 4;
		if (!elf_image_read(image, at, part, n * 4ull))
			return false;
		for (uint32_t i = 0; i < n; i++)
			last = part[i] > last ? part[i] : last;
	}
	if (last < head[1]) {
		*count = head[1];
		return true;
	}
	for (uint32_t i = 0; i < CHAIN_MAX; i++) {
		uint32_t hash;

		if (!elf_image_read(image, chains + (last - head[1] + (uint64_t)i) * 4, &hash, 4))
			return false;
		if (hash & 1) {
			*count = (uint64_t)last + i + 1;
			return true;
		}
	}
	return false;
}

/* The first section of `type`, or SHT_NULL; false where the headers cannot be read. */
static bool find_section(const struct elf_image *image, uint32_t type, Elf64_Shdr *found)
{
	Elf64_Shdr part[64];
	size_t n;

	for (size_t i = 0; i < image->n_sections && i < SECTIONS_MAX; i += n) {
		n = image->n_sections - i < 64 ? image->n_sections - i : 64;
		if (!elf_image_read(image, image->sections + i * sizeof(*part), part,
		                    n * sizeof(*part)))
			return false;
		for (size_t k = 0; k < n; k++) {
			if (part[k].sh_type == type) {
				*found = part[k];
				return true;
			}
		}
	}
	found->sh_type = SHT_NULL;
	return true;
}

/* How many symbols there are is not written in PT_DYNAMIC: the hash tables know, or a section
 * header. */
static bool count_dynamic(const struct elf_image *image, struct elf_symbols *symbols)
{
	Elf64_Shdr section;
	uint32_t head[2];

	if (symbols->sysv_hash) {
		if (!elf_image_read(image, symbols->sysv_hash, head, sizeof(head)))
			return false;
		symbols->count = head[1];
		return true;
	}
	if (symbols->gnu_hash)
		return gnu_hash_count(image, symbols->gnu_hash, &symbols->count);
	if (!find_section(image, SHT_DYNSYM, &section))
		return false;
	symbols->count = section.sh_type == SHT_NULL ? 0 : section.sh_size / sizeof(Elf64_Sym);
	return true;
}

int elf_symbols_dynamic(const struct elf_image *image, struct elf_symbols *symbols)
{
	struct dynamic dynamic = { 0 };
	const Elf64_Phdr *segment = NULL;

	memset(symbols, 0, sizeof(*symbols));
	for (size_t i = 0; i < image->n_segments && !segment; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			segment = &image->segments[i];
	if (!segment)
		return 1;
	if (!read_dynamic(image, segment, &dynamic))
		return -EBADMSG;
	if (!dynamic.symbols)
		return 1;
	symbols->at = elf_image_offset(image, dynamic.symbols, sizeof(Elf64_Sym), false);
	symbols->strings = elf_image_offset(image, dynamic.strings, dynamic.strings_bytes, false);
	symbols->strings_bytes = dynamic.strings_bytes;
	if (dynamic.gnu_hash)
		symbols->gnu_hash = elf_image_offset(image, dynamic.gnu_hash, 16, false);
	if (dynamic.sysv_hash)
		symbols->sysv_hash = elf_image_offset(image, dynamic.sysv_hash, 8, false);
	if (!symbols->at || !symbols->strings || (dynamic.gnu_hash && !symbols->gnu_hash) ||
	    (dynamic.sysv_hash && !symbols->sysv_hash) || !count_dynamic(image, symbols) ||
	    symbols->count > SYMBOLS_MAX) {
		memset(symbols, 0, sizeof(*symbols));
		return -EBADMSG;
	}
	return 0;
}

int elf_symbols_static(const struct elf_image *image, struct elf_symbols *symbols)
{
	Elf64_Shdr table, strings;

	memset(symbols, 0, sizeof(*symbols));
	if (!find_section(image, SHT_SYMTAB, &table))
		return -EBADMSG;
	if (table.sh_type == SHT_NULL)
		return 1;
	if (table.sh_entsize != sizeof(Elf64_Sym) || table.sh_link >= image->n_sections ||
	    !elf_image_read(image, image->sections + table.sh_link * sizeof(strings), &strings,
	                    sizeof(strings)) ||
	    strings.sh_type != SHT_STRTAB)
		return -EBADMSG;
	symbols->at = table.sh_offset;
	symbols->count = table.sh_size / sizeof(Elf64_Sym);
	symbols->strings = strings.sh_offset;
	symbols->strings_bytes = strings.sh_size;
	if (symbols->count > SYMBOLS_MAX || symbols->at > image->bytes ||
	    symbols->count * sizeof(Elf64_Sym) > image->bytes - symbols->at ||
	    symbols->strings > image->bytes ||
	    symbols->strings_bytes > image->bytes - symbols->strings) {
		memset(symbols, 0, sizeof(*symbols));
		return -EBADMSG;
	}
	return 0;
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* IFUNC symbols point at a resolver, which runs once: not the function that programs call. */
static bool is_defined_function(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx != SHN_ABS && symbol->st_shndx != SHN_COMMON;
}

static bool is_defined_variable(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx != SHN_ABS && symbol->st_shndx != SHN_COMMON;
}

int elf_symbols_each(const struct elf_image *image, const struct elf_symbols *symbols,
                     int (*each)(const Elf64_Sym *symbol, void *data), void *data)
{
	Elf64_Sym part[CHUNK / sizeof(Elf64_Sym)];
	const size_t room = ARRAY_SIZE(part);
	size_t n;

	for (uint64_t i = 0; i < symbols->count; i += n) {
		n = symbols->count - i < room ? symbols->count - i : room;
		if (!elf_image_read(image, symbols->at + i * sizeof(*part), part,
		                    n * sizeof(*part)))
			return -EBADMSG;
		for (size_t k = 0; k < n; k++) {
			int rc = is_defined_function(&part[k]) ? each(&part[k], data) : 0;

			if (rc)
				return rc;
		}
	}
	return 0;
}

struct lookup {
	const struct elf_image *image;
	const struct elf_symbols *symbols;
	const char *name;
	size_t len;
	bool data;        /* a variable is looked for, not a function */
	Elf64_Sym *found; /* may be NULL */
};

/* The name ends at NUL or, in a .symtab, at the version: "name@@libcudart.so.13". */
static bool names(const struct lookup *lookup, uint32_t string)
{
	char text[128];
	uint64_t left;

	if (string >= lookup->symbols->strings_bytes || lookup->len >= sizeof(text))
		return false;
	left = lookup->symbols->strings_bytes - string;
	if (left < lookup->len + 1 ||
	    !elf_image_read(lookup->image, lookup->symbols->strings + string, text,
	                    lookup->len + 1))
		return false;
	return memcmp(text, lookup->name, lookup->len) == 0 &&
	       (text[lookup->len] == '\0' || text[lookup->len] == '@');
}

/* 1 where symbol number `index` is the one looked for, 0 where not, -EBADMSG. */
static int matches(const struct lookup *lookup, uint32_t index)
{
	Elf64_Sym symbol;

	if (!elf_image_read(lookup->image, lookup->symbols->at + (uint64_t)index * sizeof(symbol),
	                    &symbol, sizeof(symbol)))
		return -EBADMSG;
	if (!(lookup->data ? is_defined_variable(&symbol) : is_defined_function(&symbol)) ||
	    !names(lookup, symbol.st_name))
		return 0;
	if (lookup->found)
		*lookup->found = symbol;
	return 1;
}

/* The table begins: buckets, index of the first hashed symbol, Bloom words, Bloom shift. */
static int gnu_hash_find(const struct lookup *lookup)
{
	uint64_t at = lookup->symbols->gnu_hash, word, chains;
	uint32_t head[4], hash = 5381, index, other;
	int rc;

	for (const char *p = lookup->name; *p; p++)
		hash = hash * 33 + (uint8_t)*p;
	if (!elf_image_read(lookup->image, at, head, sizeof(head)))
		return -EBADMSG;
	if (!head[0] || !head[2])
		return 0;
	at += sizeof(head);
	if (!elf_image_read(lookup->image, at + (hash / 64 % head[2]) * 8ull, &word, 8))
		return -EBADMSG;
	if (!(word >> (hash % 64) & 1) || !(word >> ((hash >> (head[3] & 31)) % 64) & 1))
		return 0;
	at += head[2] * 8ull;
	chains = at + head[0] * 4ull;
	if (!elf_image_read(lookup->image, at + (hash % head[0]) * 4ull, &index, 4))
		return -EBADMSG;
	if (index < head[1])
		return 0;
	for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
		if (!elf_image_read(lookup->image, chains + (index - head[1]) * 4ull, &other, 4))
			return -EBADMSG;
		if ((other | 1) == (hash | 1)) {
			rc = matches(lookup, index);
			if (rc)
				return rc;
		}
		if (other & 1)
			return 0;
	}
	return -EBADMSG;
}

/* The table is: buckets, symbols, one index for each bucket, the next index for each symbol. */
static int sysv_hash_find(const struct lookup *lookup)
{
	uint64_t at = lookup->symbols->sysv_hash;
	uint32_t head[2], hash = 0, index;
	int rc;

	for (const char *p = lookup->name; *p; p++) {
		hash = (hash << 4) + (uint8_t)*p;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	if (!elf_image_read(lookup->image, at, head, sizeof(head)))
		return -EBADMSG;
	if (!head[0])
		return 0;
	at += sizeof(head);
	if (!elf_image_read(lookup->image, at + (hash % head[0]) * 4ull, &index, 4))
		return -EBADMSG;
	at += head[0] * 4ull;
	for (uint32_t i = 0; i < CHAIN_MAX && index; i++) {
		rc = matches(lookup, index);
		if (rc)
			return rc;
		if (!elf_image_read(lookup->image, at + index * 4ull, &index, 4))
			return -EBADMSG;
	}
	return index ? -EBADMSG : 0;
}

/* Where in the strings the name stands; any tail of a longer name is a name too. */
struct elf_symbols_places {
	uint32_t at[PLACES_MAX];
	size_t n;
};

ORDER_BY(compare_places, uint32_t, ORDER_OF(*a, *b));

/* There may be sixteen million symbols, and hundreds of places. */
static int is_at_place(const Elf64_Sym *symbol, void *data)
{
	const struct elf_symbols_places *places = data;

	return bsearch(&symbol->st_name, places->at, places->n, sizeof(*places->at),
	               compare_places) != NULL;
}

/* Notes the whole names in one part of the strings that begins at `base`. */
static bool note_places(const struct lookup *lookup, const char *part, size_t have, uint64_t base,
                        struct elf_symbols_places *places)
{
	const char *hit = part;

	while ((hit = memmem(hit, have - (size_t)(hit - part), lookup->name, lookup->len))) {
		size_t end = (size_t)(hit - part) + lookup->len;

		if (end < have && (part[end] == '\0' || part[end] == '@')) {
			if (places->n == PLACES_MAX)
				return false;
			places->at[places->n++] = (uint32_t)(base + (uint64_t)(hit - part));
		}
		hit++;
	}
	return true;
}

/* A search at memory speed: the answer for nearly every file is that the name is not there. */
static bool search_strings(const struct lookup *lookup, struct elf_symbols_places *places)
{
	const struct elf_symbols *symbols = lookup->symbols;
	AT_END(at_end_free) char *part = xmalloc(CHUNK);
	size_t keep = 0, n;
	bool ok = symbols->strings_bytes <= STRINGS_MAX;

	places->n = 0;
	for (uint64_t at = 0; ok && at < symbols->strings_bytes; at += n) {
		n = CHUNK - keep;
		if (n > symbols->strings_bytes - at)
			n = symbols->strings_bytes - at;
		ok = elf_image_read(lookup->image, symbols->strings + at, part + keep, n) &&
		     note_places(lookup, part, keep + n, at - keep, places);
		/* The name may lie across the end of this part: its last bytes are
		 * searched again. */
		memmove(part, part + (keep + n < lookup->len ? 0 : keep + n - lookup->len),
		        keep + n < lookup->len ? keep + n : lookup->len);
		keep = keep + n < lookup->len ? keep + n : lookup->len;
	}
	return ok;
}

/* One of the symbols whose name stands at a place, as the lookup wants it. */
struct search {
	const struct elf_symbols_places *places;
	Elf64_Sym *found;
};

static int take_if_at_place(const Elf64_Sym *symbol, void *data)
{
	const struct search *search = data;

	if (!is_at_place(symbol, (void *)search->places))
		return 0;
	if (search->found)
		*search->found = *symbol;
	return 1;
}

/* Functions only: what has no hash table is .symtab. */
static int search_function(const struct lookup *lookup)
{
	struct elf_symbols_places places;
	const struct search search = { &places, lookup->found };

	if (!search_strings(lookup, &places))
		return -EBADMSG;
	if (!places.n)
		return 0;
	qsort(places.at, places.n, sizeof(*places.at), compare_places);
	return elf_symbols_each(lookup->image, lookup->symbols, take_if_at_place, (void *)&search);
}

int elf_symbols_find(const struct elf_image *image, const struct elf_symbols *symbols,
                     const char *name, bool variable, Elf64_Sym *found)
{
	struct lookup lookup = { image, symbols, name, strlen(name), variable, found };

	if (symbols->gnu_hash)
		return gnu_hash_find(&lookup);
	if (symbols->sysv_hash)
		return sysv_hash_find(&lookup);
	return variable ? 0 : search_function(&lookup);
}
