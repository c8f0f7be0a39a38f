// SPDX-License-Identifier: MIT
#include "unwind/frame_section.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

/* Programs and libraries have some 40 sections, and their names take some 400 bytes. */
#define SECTIONS_MAX 65536
#define NAMES_MAX    (1u << 20)

/* ---- by section headers ---------------------------------------------------------------------- */

/* The names of all sections, ended by a zero. NULL where they cannot be read. */
static char *read_names(const struct elf_image *image, size_t *bytes)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	uint64_t index;
	char *names;

	if (!image->n_sections || !elf_image_read(image, 0, &header, sizeof(header)))
		return NULL;
	index = header.e_shstrndx;
	if (index == SHN_XINDEX &&
	    elf_image_read(image, image->sections, &section, sizeof(section)))
		index = section.sh_link;
	if (index >= image->n_sections || index >= SECTIONS_MAX ||
	    !elf_image_read(image, image->sections + index * sizeof(section), &section,
	                    sizeof(section)))
		return NULL;
	*bytes = section.sh_size < NAMES_MAX ? section.sh_size : NAMES_MAX;
	names = xmalloc(*bytes + 1);
	names[*bytes] = '\0';
	if (elf_image_read(image, section.sh_offset, names, *bytes))
		return names;
	free(names);
	return NULL;
}

static bool is_named(const Elf64_Shdr *section, const char *names, size_t bytes, const char *name)
{
	return section->sh_type != SHT_NULL && section->sh_type != SHT_NOBITS &&
	       !(section->sh_flags & SHF_COMPRESSED) && section->sh_name < bytes &&
	       strcmp(names + section->sh_name, name) == 0;
}

static bool find_among(const struct elf_image *image, const char *names, size_t bytes,
                       const char *name, Elf64_Shdr *found)
{
	size_t total = image->n_sections < SECTIONS_MAX ? image->n_sections : SECTIONS_MAX, n;
	Elf64_Shdr part[64];

	for (size_t i = 0; i < total; i += n) {
		n = total - i < ARRAY_SIZE(part) ? total - i : ARRAY_SIZE(part);
		if (!elf_image_read(image, image->sections + i * sizeof(*part), part,
		                    n * sizeof(*part)))
			return false;
		for (size_t k = 0; k < n; k++) {
			if (is_named(&part[k], names, bytes, name)) {
				*found = part[k];
				return true;
			}
		}
	}
	return false;
}

static bool find_by_name(const struct elf_image *image, const char *name,
                         struct frame_section *found)
{
	Elf64_Shdr section;
	size_t bytes = 0;
	char *names = read_names(image, &bytes);
	bool is_there = names && find_among(image, names, bytes, name, &section);

	free(names);
	if (!is_there)
		return false;
	*found = (struct frame_section){ .offset = section.sh_offset,
		                         .bytes = section.sh_size,
		                         .address = section.sh_addr };
	return true;
}

bool frame_section_find_debug(const struct elf_image *image, struct frame_section *found)
{
	if (!find_by_name(image, ".debug_frame", found))
		return false;
	found->debug = true;
	return true;
}

/* ---- by program header ----------------------------------------------------------------------- */

/* .eh_frame_hdr: a version, three encodings of pointers, and then where .eh_frame is. */
static bool read_pointer(const struct elf_image *image, uint64_t offset, uint64_t address,
                         uint64_t *frames)
{
	uint8_t head[4 + 10];
	struct cfi_section section = { .data = head, .bytes = sizeof(head), .address = address };
	struct cfi_bytes bytes = { head + 4, head + sizeof(head), false };

	if (!elf_image_read(image, offset, head, sizeof(head)) || head[0] != 1)
		return false;
	*frames = cfi_pointer(&section, &bytes, head[1]);
	return !bytes.bad;
}

static bool find_by_segment(const struct elf_image *image, struct frame_section *found)
{
	const Elf64_Phdr *segment;
	uint64_t address, into;

	for (size_t i = 0; i < image->n_segments; i++) {
		segment = &image->segments[i];
		if (segment->p_type != PT_GNU_EH_FRAME ||
		    !read_pointer(image, segment->p_offset, segment->p_vaddr, &address))
			continue;
		segment = elf_image_segment(image, address, 1);
		if (!segment)
			continue;
		into = address - segment->p_vaddr;
		*found = (struct frame_section){ .offset = segment->p_offset + into,
			                         .bytes = segment->p_filesz - into,
			                         .address = address,
			                         .ends_at_zero = true };
		if (found->offset >= image->bytes)
			continue;
		if (found->bytes > image->bytes - found->offset)
			found->bytes = image->bytes - found->offset;
		return true;
	}
	return false;
}

bool frame_section_find(const struct elf_image *image, struct frame_section *found)
{
	return find_by_name(image, ".eh_frame", found) || find_by_segment(image, found);
}

/* ---- its bytes ------------------------------------------------------------------------------- */

bool frame_section_read(const struct elf_image *image, const struct frame_section *found,
                        size_t bytes, struct cfi_section *section)
{
	uint8_t *data;

	if (found->bytes < bytes)
		bytes = found->bytes;
	/* Before memory is asked for: the header may say anything. */
	if (found->offset > image->bytes || bytes > image->bytes - found->offset)
		return false;
	data = xmalloc(bytes + 1);
	*section = (struct cfi_section){ .data = data,
		                         .bytes = bytes,
		                         .address = found->address,
		                         .debug = found->debug,
		                         .ends_at_zero = found->ends_at_zero };
	if (elf_image_read(image, found->offset, data, bytes))
		return true;
	free(data);
	section->data = NULL;
	return false;
}
