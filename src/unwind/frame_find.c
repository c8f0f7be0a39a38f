// SPDX-License-Identifier: MIT
#include "unwind/frame_find.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/xalloc.h"

/* ---- frame rules --------------------------------------------------------------------------- */

#define TABLE_BITS 15 /* twice UNWIND_RULES_MAX */
#define TABLE_SIZE (1u << TABLE_BITS)
#define STEPS_MAX  64

#define X86_R10 10 /* gcc keeps the caller's stack in it while it aligns its own */
#define X86_RA  (-8)

_Static_assert(TABLE_SIZE >= 2 * UNWIND_RULES_MAX && UNWIND_RULES_MAX < UINT16_MAX,
               "every rule has a place, and its number fits");
_Static_assert(CFI_OTHER < 8, "how a register is saved takes three bits of a key");
_Static_assert(sizeof(struct wire_rule) == 16, "rules are compared and hashed as bytes");

/* ---- the table ------------------------------------------------------------------------------- */

void frame_rules_begin(struct frame_rules *rules)
{
	*rules = (struct frame_rules){
		.table = xcalloc(TABLE_SIZE, sizeof(*rules->table)),
		.states = xcalloc(1u << FRAME_STATE_BITS, sizeof(*rules->states)),
	};
}

void frame_rules_free(struct frame_rules *rules)
{
	free(rules->rules);
	free(rules->table);
	free(rules->states);
	*rules = (struct frame_rules){ 0 };
}

static uint32_t hash_of(const struct wire_rule *rule)
{
	uint64_t words[2], hash;

	memcpy(words, rule, sizeof(words));
	hash = words[0] * 0x9e3779b97f4a7c15ull ^ words[1] * 0xc2b2ae3d27d4eb4full;
	hash ^= hash >> 29;
	return (uint32_t)(hash * 0x9e3779b97f4a7c15ull >> (64 - TABLE_BITS));
}

static uint32_t add_rule(struct frame_rules *rules, const struct wire_rule *rule)
{
	if (rules->count == UNWIND_RULES_MAX)
		return UNWIND_UNUSED;
	rules->rules = vec_room(rules->rules, rules->count, sizeof(*rule));
	rules->rules[rules->count] = *rule;
	return rules->count++;
}

uint32_t frame_rules_number(struct frame_rules *rules, const struct wire_rule *rule, int64_t *work)
{
	uint32_t at = hash_of(rule), number;

	for (uint32_t step = 0; step < STEPS_MAX; step++, at = (at + 1) % TABLE_SIZE) {
		--*work;
		if (!rules->table[at]) {
			number = add_rule(rules, rule);
			if (number != UNWIND_UNUSED)
				rules->table[at] = (uint16_t)(number + 1);
			return number;
		}
		number = rules->table[at] - 1u;
		if (memcmp(&rules->rules[number], rule, sizeof(*rule)) == 0)
			return number;
	}
	return UNWIND_UNUSED;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct wire_rule frame_rule_plain(enum unwind_cfa kind)
{
	return (struct wire_rule){ .cfa_kind = kind };
}

static bool take_s32(int64_t from, int32_t *to)
{
	*to = (int32_t)from;
	return *to == from;
}

static bool take_cfa(const struct cfi_machine *machine, const struct cfi_state *state,
                     struct wire_rule *rule)
{
	bool is_sp = state->cfa_register == machine->sp, is_fp = state->cfa_register == machine->fp;

	switch (state->cfa) {
	case CFI_CFA_REGISTER:
		if (is_sp || is_fp)
			rule->cfa_kind = is_sp ? CFA_SP : CFA_FP;
		else if (machine->elf == EM_X86_64 && state->cfa_register == X86_R10)
			rule->cfa_kind = CFA_R10;
		else
			return false;
		break;
	case CFI_CFA_AT:
		if (!is_sp && !is_fp)
			return false;
		rule->cfa_kind = is_sp ? CFA_AT_SP : CFA_AT_FP;
		rule->add = (int16_t)state->cfa_add;
		if (rule->add != state->cfa_add)
			return false;
		break;
	case CFI_CFA_PLT:
		rule->cfa_kind = CFA_PLT;
		if (machine->elf != EM_X86_64)
			return false;
		break;
	default:
		return false;
	}
	return take_s32(state->cfa_offset, &rule->cfa);
}

static bool take_ra(const struct cfi_machine *machine, const struct cfi_state *state,
                    struct wire_rule *rule)
{
	bool is_x86 = machine->elf == EM_X86_64;

	if (!is_x86 && (state->ra.saved == CFI_UNSAID || state->ra.saved == CFI_SAME)) {
		rule->ra_kind = RA_LR;
		return true;
	}
	rule->ra_kind = RA_CFA;
	return state->ra.saved == CFI_AT_CFA && (!is_x86 || state->ra.offset == X86_RA) &&
	       take_s32(state->ra.offset, &rule->ra);
}

/* A frame pointer that cannot be found again ends no stack: most callers do without. */
static void take_fp(const struct cfi_state *state, struct wire_rule *rule)
{
	rule->fp_kind = FP_SAME;
	if (state->fp.saved == CFI_UNSAID || state->fp.saved == CFI_SAME)
		return;
	rule->fp_kind = state->fp.saved == CFI_AT_CFA  ? FP_CFA
	                : state->fp.saved == CFI_AT_FP ? FP_AT_FP
	                                               : FP_GONE;
	if (rule->fp_kind == FP_GONE || take_s32(state->fp.offset, &rule->fp))
		return;
	rule->fp_kind = FP_GONE;
	rule->fp = 0;
}

bool frame_rule_of(const struct cfi_machine *machine, const struct cfi_state *state,
                   struct wire_rule *rule)
{
	*rule = frame_rule_plain(CFA_STOP);
	if (state->ra.saved == CFI_UNDEFINED)
		return true;
	if (state->sp.saved == CFI_UNSAID && take_cfa(machine, state, rule) &&
	    take_ra(machine, state, rule)) {
		take_fp(state, rule);
		return true;
	}
	*rule = frame_rule_plain(CFA_OTHER);
	return false;
}

/* ---- states that are known ------------------------------------------------------------------- */

bool frame_rules_meet(struct frame_rules *rules, const struct cfi_machine *machine,
                      const struct cfi_state *state, int64_t *work, uint64_t key, uint32_t *number)
{
	struct wire_rule rule;
	bool is_followed = frame_rule_of(machine, state, &rule);

	*number = frame_rules_number(rules, &rule, work);
	if (key && is_followed && *number != UNWIND_UNUSED)
		*frame_rules_known(rules, key) = (struct known_state){ key, *number };
	return is_followed;
}

/* ---- frame section ------------------------------------------------------------------------- */

/* ---- by section headers ---------------------------------------------------------------------- */

static bool find_by_name(const struct elf_image *image, const char *name,
                         struct frame_section *found)
{
	Elf64_Shdr section;

	if (!elf_image_section(image, name, &section) || section.sh_type == SHT_NULL ||
	    section.sh_type == SHT_NOBITS || section.sh_flags & SHF_COMPRESSED)
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

/* ---- frame find ---------------------------------------------------------------------------- */

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
