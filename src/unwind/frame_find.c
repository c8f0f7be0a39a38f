// SPDX-License-Identifier: MIT
#include "unwind/frame_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/frame_rules.h"
#include "unwind/frame_section.h"

#define PAIR_BYTES 8
#define TABLE_KIND 0x3b  /* DW_EH_PE_datarel | DW_EH_PE_sdata4: the one that linkers write */
#define WORK_MOST  16384 /* instructions of one function */

/* ---- reading --------------------------------------------------------------------------------- */

static const Elf64_Phdr *table_segment(const struct elf_image *image)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		if (image->segments[i].p_type == PT_GNU_EH_FRAME)
			return &image->segments[i];
	}
	return NULL;
}

/* A version, the encodings of what follows: where .eh_frame is, how many pairs there are, these. */
static bool read_table(const struct elf_image *image, size_t most, struct frame_find *find)
{
	const Elf64_Phdr *segment = table_segment(image);
	struct cfi_section section = { 0 };
	struct cfi_bytes bytes;
	uint8_t *data;

	if (!segment || segment->p_filesz > most || segment->p_filesz < 4)
		return false;
	data = xmalloc(segment->p_filesz);
	section = (struct cfi_section){ .data = data,
		                        .bytes = segment->p_filesz,
		                        .address = segment->p_vaddr };
	bytes = (struct cfi_bytes){ data + 4, data + segment->p_filesz, false };
	if (elf_image_read(image, segment->p_offset, data, segment->p_filesz) && data[0] == 1 &&
	    data[3] == TABLE_KIND) {
		cfi_pointer(&section, &bytes, data[1]);
		find->count = cfi_pointer(&section, &bytes, data[2]);
		if (!bytes.bad && find->count <= cfi_left(&bytes) / PAIR_BYTES) {
			memmove(data, bytes.at, find->count * PAIR_BYTES);
			find->table = data;
			find->from = segment->p_vaddr;
			find->bytes = segment->p_filesz;
			return true;
		}
	}
	free(data);
	return false;
}

bool frame_find_read(const struct elf_image *image, size_t most, struct frame_find *find)
{
	struct frame_section section;
	Elf64_Ehdr header;

	*find = (struct frame_find){ 0 };
	if (!elf_image_read(image, 0, &header, sizeof(header)) ||
	    !frame_section_find(image, &section) || section.bytes > most ||
	    !read_table(image, most - section.bytes, find))
		return false;
	find->machine = cfi_machine_of(header.e_machine);
	if (find->machine && frame_section_read(image, &section, section.bytes, &find->section)) {
		find->bytes += section.bytes;
		return true;
	}
	frame_find_free(find);
	return false;
}

void frame_find_free(struct frame_find *find)
{
	free((void *)find->section.data);
	free((void *)find->table);
	*find = (struct frame_find){ 0 };
}

/* ---- one address ----------------------------------------------------------------------------- */

static uint64_t number_at(const struct frame_find *find, size_t i, size_t into)
{
	int32_t value;

	memcpy(&value, find->table + i * PAIR_BYTES + into, sizeof(value));
	return find->from + (uint64_t)(int64_t)value;
}

/* The place in the section of the entry of the function that begins last before the address. */
static bool find_entry(const struct frame_find *find, uint64_t address, size_t *at)
{
	size_t low = 0, high = find->count;
	uint64_t entry;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (number_at(find, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	entry = number_at(find, low - 1, 4);
	*at = entry - find->section.address;
	return entry >= find->section.address && *at < find->section.bytes;
}

struct wanted {
	const struct cfi_machine *machine;
	uint64_t address;
	struct wire_rule *rule;
	bool found;
};

static bool take_row(void *data, uint64_t from, uint64_t to, const struct cfi_state *state)
{
	struct wanted *wanted = data;

	if (wanted->address < from || wanted->address >= to)
		return wanted->address >= to;
	wanted->found = frame_rule_of(wanted->machine, state, wanted->rule);
	return false;
}

static bool run_entry(const struct frame_find *find, const struct cfi_cie *cie,
                      const struct cfi_fde *fde, uint64_t address, struct wire_rule *rule)
{
	struct wanted wanted = { .machine = find->machine, .address = address, .rule = rule };
	int64_t work = WORK_MOST;
	struct cfi_state initial = { 0 }, state;
	struct cfi_run run = { .machine = find->machine,
		               .section = &find->section,
		               .cie = cie,
		               .program = cie->program,
		               .work = &work };

	if (cie->ra != find->machine->ra || !cfi_run(&run, &initial))
		return false;
	state = initial;
	run.program = fde->program;
	run.at = fde->start;
	run.end = fde->end;
	run.initial = &initial;
	run.row = take_row;
	run.data = &wanted;
	cfi_run(&run, &state);
	return wanted.found;
}

bool frame_find_rule(const struct frame_find *find, uint64_t address, struct wire_rule *rule)
{
	struct cfi_entry entry;
	struct cfi_cie cie;
	struct cfi_fde fde;
	size_t at;

	if (!find->count || !find_entry(find, address, &at))
		return false;
	entry = cfi_entry_at(&find->section, at);
	if (entry.kind != CFI_FDE || !cfi_cie_read(&find->section, entry.cie, &cie) ||
	    !cfi_fde_read(&find->section, &entry, &cie, &fde) || address < fde.start ||
	    address >= fde.end)
		return false;
	if (cie.signal) {
		*rule = frame_rule_plain(CFA_SIGNAL);
		return true;
	}
	return run_entry(find, &cie, &fde, address, rule);
}
