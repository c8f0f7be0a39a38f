// SPDX-License-Identifier: MIT
#include "probe/own_markers.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/xalloc.h"

#define NOTES_MAX    (4u << 20) /* bytes of all notes of a file; libpython has 3 KiB */
#define NOTE_STAPSDT 3
#define NAME_BYTES   512 /* of provider and name together; longer ones are not hooked */

struct marker {
	uint64_t address, base, counter;
	const char *provider, *name, *arguments;
};

/* The text that begins at `*at`, behind which it goes on; NULL where it has no end. */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, 0, (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

static bool read_marker(const char *from, size_t bytes, struct marker *marker)
{
	const char *end = from + bytes;
	uint64_t places[3];

	if (bytes < sizeof(places))
		return false;
	memcpy(places, from, sizeof(places));
	from += sizeof(places);
	*marker = (struct marker){ .address = places[0], .base = places[1], .counter = places[2] };
	marker->provider = take_text(&from, end);
	marker->name = marker->provider ? take_text(&from, end) : NULL;
	marker->arguments = marker->name ? take_text(&from, end) : NULL;
	return marker->arguments != NULL;
}

/* File offset of an address in any segment; 0 where none has it. */
static uint64_t offset_of(const struct elf_image *image, uint64_t address, bool code)
{
	const Elf64_Phdr *segment = elf_image_segment(image, address, 1);

	if (!segment || (code && !(segment->p_flags & PF_X)))
		return 0;
	return address - segment->p_vaddr + segment->p_offset;
}

static void add_marker(const struct elf_image *image, const struct marker *marker, uint64_t moved,
                       size_t number, struct own_functions *into)
{
	uint64_t offset = offset_of(image, marker->address + moved, true);
	struct own_function *function;

	if (!offset || into->matches[number] >= HOOK_MATCHES_TOP ||
	    strlen(marker->provider) + strlen(marker->name) >= NAME_BYTES)
		return;
	into->matches[number]++;
	into->list = vec_room(into->list, into->n, sizeof(*into->list));
	function = &into->list[into->n++];
	*function = (struct own_function){
		.name = xasprintf("%s:%s", marker->provider, marker->name),
		.spec = number,
		.address = marker->address + moved,
		.offset = offset,
		.counter = marker->counter ? offset_of(image, marker->counter + moved, false) : 0,
		.arguments = xstrdup(marker->arguments),
	};
}

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* `base` is where the section .stapsdt.base lies; a tool that moved all since wrote that anew. */
static void read_notes(const struct elf_image *image, const char *at, size_t bytes, uint64_t base,
                       const struct hook_spec *spec, size_t number, struct own_functions *into)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;
		struct marker marker;
		size_t name, all;

		memcpy(&head, at, sizeof(head));
		if (head.n_namesz > bytes || head.n_descsz > bytes)
			return;
		name = sizeof(head) + padded(head.n_namesz);
		all = name + padded(head.n_descsz);
		if (name + head.n_descsz > bytes)
			return;
		if (head.n_type == NOTE_STAPSDT && head.n_namesz == 8 &&
		    !memcmp(at + sizeof(head), "stapsdt", 8) &&
		    read_marker(at + name, head.n_descsz, &marker) &&
		    !fnmatch(spec->provider, marker.provider, 0) &&
		    !fnmatch(spec->glob, marker.name, 0))
			add_marker(image, &marker, base && marker.base ? base - marker.base : 0,
			           number, into);
		if (all > bytes)
			return;
		at += all;
		bytes -= all;
	}
}

void own_markers_read(const struct elf_image *image, const struct hook_spec *spec, size_t number,
                      struct own_functions *into)
{
	Elf64_Shdr base, notes;
	char *data;

	if (!elf_image_section(image, ".note.stapsdt", &notes) || !notes.sh_size ||
	    notes.sh_size > NOTES_MAX || notes.sh_size > image->bytes)
		return;
	elf_image_section(image, ".stapsdt.base", &base);
	data = xmalloc(notes.sh_size);
	if (elf_image_read(image, notes.sh_offset, data, notes.sh_size))
		read_notes(image, data, notes.sh_size, base.sh_addr, spec, number, into);
	free(data);
}
