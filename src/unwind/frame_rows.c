// SPDX-License-Identifier: MIT
#include "unwind/frame_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/frame_find.h"

/* ---- start context ------------------------------------------------------------------------- */

#define CODE_MAX  1024 /* of makecontext, which has 450 bytes in glibc 2.36 */
#define LEA_BYTES 7

/* It takes its stack from rbx: mov %rbx,%rsp; maybe after an endbr64. */
static bool is_start(const struct elf_image *image, uint64_t address)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa }, move[] = { 0x48, 0x89, 0xdc };
	uint8_t code[sizeof(endbr) + sizeof(move)];

	if (!elf_image_read_linked(image, address, code, sizeof(code), true))
		return false;
	return !memcmp(code, move, sizeof(move)) ||
	       (!memcmp(code, endbr, sizeof(endbr)) &&
	        !memcmp(code + sizeof(endbr), move, sizeof(move)));
}

/* lea DISTANCE(%rip),REGISTER */
static bool is_lea(const uint8_t *code, int32_t *distance)
{
	memcpy(distance, code + 3, sizeof(*distance));
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 0x05;
}

uint64_t start_context_find(const struct elf_image *image)
{
	struct elf_symbols symbols;
	uint8_t code[CODE_MAX];
	Elf64_Sym made;
	int32_t distance;
	size_t bytes;

	if (elf_symbols_dynamic(image, &symbols) ||
	    elf_symbols_find(image, &symbols, "makecontext", false, &made) != 1)
		return 0;
	bytes = made.st_size < sizeof(code) ? made.st_size : sizeof(code);
	if (!elf_image_read_linked(image, made.st_value, code, bytes, true))
		return 0;
	for (size_t at = 0; at + LEA_BYTES <= bytes; at++) {
		uint64_t target;

		if (!is_lea(code + at, &distance))
			continue;
		target = made.st_value + at + LEA_BYTES + (uint64_t)(int64_t)distance;
		if (is_start(image, target))
			return target;
	}
	return 0;
}

/* ---- frame rows ---------------------------------------------------------------------------- */

/* Padding between functions; what is longer is no code, or code that nothing is said of. */
#define GAP_MAX 15

#define FEW_FDES    8          /* of .eh_frame: the file's other section is read as well */
#define FDES_MAX    (2u << 20) /* five times those of PyTorch */
#define SORT_BITS   11         /* of an address, at a time: three times */
#define SORT_PLACES (1u << SORT_BITS)
#define CIES_KEPT   64 /* real files have a few */
#define CIE_WORK    8  /* what reading one takes, in instructions */
#define ROOM_MIN    256
#define NONE_NUMBER 0          /* of the rule CFA_NONE: it is the first */
#define RANK_BIT    31         /* of `at`: from which section */
#define PART_MAX    (1u << 30) /* bytes of a section, so that offsets in it fit */

struct fde {                 /* 12 bytes: PyTorch has 400,000 */
	uint32_t start, end; /* from the base */
	uint32_t at;         /* offset in its section; the highest bit is the section */
};

/* Of the budget: sorting takes as much again. */
#define FDE_BYTES (2 * sizeof(struct fde))

struct kept_cie {
	const struct cfi_section *section;
	size_t at;
	bool is_good;
	struct cfi_cie cie;
	struct cfi_state initial;
};

struct compiler {
	const struct cfi_section *sections;
	const struct frame_code *code;
	struct frame_rows *out;
	struct frame_rules rules;
	struct kept_cie *cies;
	struct fde *fdes;
	size_t n_fdes, fdes_room, rows_room;
	size_t budget; /* what is left of it */
	int64_t work;
	bool full;         /* of rows */
	uint64_t from, to; /* rows are wanted of this stretch, as linked */
};

/*
 * Room for more than `count` things of `bytes` each, which there is not, as far as the budget goes.
 * False, and told, where there is none.
 */
static bool grow(struct compiler *compiler, void **things, size_t bytes, size_t count, size_t *room,
                 size_t most)
{
	size_t now = *room ? 2 * *room : ROOM_MIN, budget = compiler->budget + *room * bytes;

	if (now > most)
		now = most;
	if (now > budget / bytes)
		now = budget / bytes;
	if (now <= count) {
		compiler->out->counts.cut = true;
		return false;
	}
	compiler->budget = budget - now * bytes;
	*things = xrealloc(*things, now * bytes);
	*room = now;
	return true;
}

/* ---- CIEs ------------------------------------------------------------------------------------ */

static void read_cie(struct compiler *compiler, struct kept_cie *kept)
{
	struct cfi_run run = { .machine = compiler->code->machine,
		               .section = kept->section,
		               .cie = &kept->cie,
		               .work = &compiler->work };

	memset(&kept->initial, 0, sizeof(kept->initial));
	kept->is_good = cfi_cie_read(kept->section, kept->at, &kept->cie);
	if (!kept->is_good)
		return;
	run.program = kept->cie.program;
	kept->is_good =
		kept->cie.ra == compiler->code->machine->ra && cfi_run(&run, &kept->initial);
}

/* NULL where it makes no sense. Of two that have one place the last one is kept. */
static const struct kept_cie *cie_at(struct compiler *compiler, const struct cfi_section *section,
                                     size_t at)
{
	struct kept_cie *kept = &compiler->cies[at / 4 % CIES_KEPT];

	if (kept->section != section || kept->at != at) {
		compiler->work -= CIE_WORK;
		kept->section = section;
		kept->at = at;
		read_cie(compiler, kept);
	}
	return kept->is_good ? kept : NULL;
}

/* ---- FDEs ------------------------------------------------------------------------------------ */

/* False where there is no room for more. */
static bool add_fde(struct compiler *compiler, const struct cfi_fde *fde, uint32_t at)
{
	const struct frame_code *code = compiler->code;
	void *fdes = compiler->fdes;
	bool is_room;

	if (fde->start < code->low || fde->end > code->high || fde->start == fde->end ||
	    fde->end - code->base >= UNWIND_UNUSED) {
		compiler->out->counts.outside++;
		return true;
	}
	is_room =
		compiler->n_fdes < compiler->fdes_room ||
		grow(compiler, &fdes, FDE_BYTES, compiler->n_fdes, &compiler->fdes_room, FDES_MAX);
	compiler->fdes = fdes;
	if (is_room)
		compiler->fdes[compiler->n_fdes++] =
			(struct fde){ (uint32_t)(fde->start - code->base),
			              (uint32_t)(fde->end - code->base), at };
	return is_room;
}

static bool note_fde(struct compiler *compiler, const struct cfi_section *section,
                     const struct cfi_entry *entry, size_t at)
{
	const struct kept_cie *kept = NULL;
	struct cfi_fde fde;
	uint32_t rank = section == compiler->sections ? 0 : 1;

	if (entry->kind == CFI_FDE)
		kept = cie_at(compiler, section, entry->cie);
	if (!kept || !cfi_fde_read(section, entry, &kept->cie, &fde)) {
		compiler->out->counts.bad_fdes++;
		return true;
	}
	return add_fde(compiler, &fde, (uint32_t)at | rank << RANK_BIT);
}

static void list_fdes(struct compiler *compiler, const struct cfi_section *section)
{
	struct cfi_entry entry;

	for (size_t at = 0; compiler->work > 0; at = entry.next) {
		entry = cfi_entry_at(section, at);
		compiler->work--;
		if (entry.kind == CFI_END)
			return;
		if (entry.kind != CFI_CIE && entry.kind != CFI_NOTHING &&
		    !note_fde(compiler, section, &entry, at))
			return;
	}
	compiler->out->counts.cut = true;
}

/* By some bits of their start, those that are equal in the order that they had. */
static void sort_by(const struct fde *from, struct fde *to, size_t n, unsigned shift)
{
	size_t places[SORT_PLACES] = { 0 }, place = 0;

	for (size_t i = 0; i < n; i++)
		places[from[i].start >> shift & (SORT_PLACES - 1)]++;
	for (size_t i = 0; i < SORT_PLACES; i++) {
		size_t count = places[i];

		places[i] = place;
		place += count;
	}
	for (size_t i = 0; i < n; i++)
		to[places[from[i].start >> shift & (SORT_PLACES - 1)]++] = from[i];
}

/* In the order of their sections they are when they are listed, and so they stay. */
static void sort_by_start(struct compiler *compiler)
{
	struct fde *fdes = compiler->fdes;
	struct fde *other = xmalloc(compiler->n_fdes * sizeof(*fdes));

	for (unsigned shift = 0; shift < 32; shift += SORT_BITS) {
		struct fde *sorted = other;

		sort_by(fdes, sorted, compiler->n_fdes, shift);
		other = fdes;
		fdes = sorted;
	}
	free(other);
	compiler->fdes = fdes;
}

/* One function for each address: of several the first. */
static void sort_fdes(struct compiler *compiler)
{
	struct fde *fdes;
	size_t kept = 0;

	if (!compiler->n_fdes)
		return;
	sort_by_start(compiler);
	fdes = compiler->fdes;
	for (size_t i = 0; i < compiler->n_fdes; i++) {
		if (!kept || fdes[kept - 1].start != fdes[i].start)
			fdes[kept++] = fdes[i];
	}
	compiler->n_fdes = kept;
	compiler->fdes = xrealloc(fdes, kept * sizeof(*fdes));
	compiler->budget += compiler->fdes_room * FDE_BYTES - kept * sizeof(*fdes);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * From this address on, this rule: of a higher address each time. False where there is no room: the
 * last row that has any says that nothing is known from here on.
 */
static bool add_row(struct compiler *compiler, uint64_t address, uint32_t rule)
{
	struct frame_rows *out = compiler->out;
	void *rows = out->rows;

	if (compiler->full)
		return false;
	if (out->n_rows && out->rows[out->n_rows - 1].address == address)
		out->n_rows--;
	if (out->n_rows && out->rows[out->n_rows - 1].rule == rule)
		return true;
	compiler->full = out->n_rows + 1 >= compiler->rows_room &&
	                 !grow(compiler, &rows, sizeof(struct wire_row), out->n_rows + 1,
	                       &compiler->rows_room, UNWIND_ROWS_MAX);
	out->rows = rows;
	if (compiler->full)
		rule = NONE_NUMBER;
	if (!compiler->full || !out->n_rows || out->rows[out->n_rows - 1].rule != rule)
		out->rows[out->n_rows++] = (struct wire_row){ (uint32_t)address, rule };
	return !compiler->full;
}

static uint32_t checked(struct compiler *compiler, uint32_t number)
{
	if (number != UNWIND_UNUSED)
		return number;
	compiler->out->counts.cut = true;
	return NONE_NUMBER;
}

static bool add_plain(struct compiler *compiler, uint64_t address, enum unwind_cfa kind)
{
	struct wire_rule rule = frame_rule_plain(kind);
	uint32_t number = frame_rules_number(&compiler->rules, &rule, &compiler->work);

	return add_row(compiler, address, checked(compiler, number));
}

/* A stretch of a function, of which what lies in [from, to) is wanted. */
static bool take_row(void *data, uint64_t from, uint64_t to, const struct cfi_state *state)
{
	struct compiler *compiler = data;
	uint32_t number;

	if (from >= compiler->to)
		return false;
	if (to <= compiler->from)
		return true;
	if (!frame_rules_of(&compiler->rules, compiler->code->machine, state, &compiler->work,
	                    &number))
		compiler->out->counts.unsupported++;
	if (from < compiler->from)
		from = compiler->from;
	return add_row(compiler, from - compiler->code->base, checked(compiler, number));
}

static void run_fde(struct compiler *compiler, const struct cfi_section *section,
                    const struct kept_cie *kept, const struct cfi_fde *fde)
{
	struct cfi_state state = kept->initial;
	struct cfi_run run = { .machine = compiler->code->machine,
		               .section = section,
		               .cie = &kept->cie,
		               .program = fde->program,
		               .at = fde->start,
		               .end = fde->end,
		               .initial = &kept->initial,
		               .row = take_row,
		               .data = compiler,
		               .work = &compiler->work };

	if (cfi_run(&run, &state))
		return;
	if (compiler->work > 0)
		compiler->out->counts.bad_fdes++;
	if (run.at < compiler->from)
		run.at = compiler->from;
	if (run.at < compiler->to)
		add_plain(compiler, run.at - compiler->code->base, CFA_OTHER);
}

/* What returns to its first byte is looked up by the byte before. */
static bool is_outermost(const struct compiler *compiler, uint64_t start)
{
	return compiler->code->outermost &&
	       compiler->code->base + start == compiler->code->outermost;
}

/* The rows of a function, as far as they lie in [from, to), which is within it. */
static void compile_fde(struct compiler *compiler, const struct fde *fde, uint64_t from,
                        uint64_t to)
{
	const struct cfi_section *section = &compiler->sections[fde->at >> RANK_BIT];
	struct cfi_entry entry = cfi_entry_at(section, fde->at & ~(1u << RANK_BIT));
	const struct kept_cie *kept = cie_at(compiler, section, entry.cie);
	struct cfi_fde read;

	compiler->work--;
	if (is_outermost(compiler, fde->start)) {
		add_plain(compiler, from, CFA_STOP);
		return;
	}
	compiler->from = compiler->code->base + from;
	compiler->to = compiler->code->base + to;
	/* They were good when they were listed; only where the work is over they may not be. */
	if (!kept || !cfi_fde_read(section, &entry, &kept->cie, &read))
		add_plain(compiler, from, CFA_NONE);
	else if (kept->cie.signal)
		add_plain(compiler, from, CFA_SIGNAL);
	else
		run_fde(compiler, section, kept, &read);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Where one function lies in another, as assembly code has it, the inner one has the say until its
 * end, and then the outer one again.
 */
static void compile_fdes(struct compiler *compiler)
{
	const struct fde *fdes = compiler->fdes, *outer = fdes;
	uint64_t next, known = 0;
	size_t i;

	for (i = 0; i < compiler->n_fdes && compiler->work > 0 && !compiler->full; i++) {
		const struct fde *fde = &fdes[i];

		next = i + 1 < compiler->n_fdes ? fdes[i + 1].start : UINT64_MAX;
		known = lesser(fde->end, next);
		compile_fde(compiler, fde, fde->start, known);
		if (known < next && outer->end > known) {
			compile_fde(compiler, outer, known, lesser(outer->end, next));
			known = lesser(outer->end, next);
		}
		if (fde->end > outer->end)
			outer = fde;
		if (next - known > GAP_MAX)
			add_plain(compiler, known, CFA_NONE);
		if (next > known && is_outermost(compiler, next))
			add_plain(compiler, next - 1, CFA_STOP);
		compiler->out->counts.fdes++;
	}
	if (i < compiler->n_fdes) {
		compiler->out->counts.cut = true;
		add_plain(compiler, known, CFA_NONE);
	}
}

void frame_rows_compile(const struct cfi_section *sections, size_t n_sections,
                        const struct frame_code *code, size_t budget, struct frame_rows *out)
{
	struct compiler compiler = { .sections = sections,
		                     .code = code,
		                     .out = out,
		                     .rows_room = ROOM_MIN,
		                     .budget = budget,
		                     .work = FRAME_WORK_MAX };

	*out = (struct frame_rows){ .base = code->base };
	out->rows = xmalloc(ROOM_MIN * sizeof(*out->rows)); /* whatever the budget is */
	frame_rules_begin(&compiler.rules);
	compiler.cies = xcalloc(CIES_KEPT, sizeof(*compiler.cies));
	add_plain(&compiler, 0, CFA_NONE);
	for (size_t i = 0; i < n_sections; i++)
		list_fdes(&compiler, &sections[i]);
	sort_fdes(&compiler);
	compile_fdes(&compiler);
	out->rows = xrealloc(out->rows, out->n_rows * sizeof(*out->rows));
	out->rules = compiler.rules.rules;
	out->n_rules = compiler.rules.count;
	compiler.rules.rules = NULL;
	frame_rules_free(&compiler.rules);
	free(compiler.cies);
	free(compiler.fdes);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Also where there is no code at all, or none that is executable. */
static void find_code(const struct elf_image *image, struct frame_code *code)
{
	*code = (struct frame_code){ .base = UINT64_MAX, .low = UINT64_MAX };
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t end = segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD || end < segment->p_vaddr)
			continue;
		if (segment->p_vaddr < code->base)
			code->base = segment->p_vaddr;
		if (!(segment->p_flags & PF_X))
			continue;
		if (segment->p_vaddr < code->low)
			code->low = segment->p_vaddr;
		if (end > code->high)
			code->high = end;
	}
}

static bool has_few_fdes(const struct cfi_section *section)
{
	size_t count = 0;
	struct cfi_entry entry;

	for (size_t at = 0; count < FEW_FDES; at = entry.next) {
		entry = cfi_entry_at(section, at);
		if (entry.kind == CFI_END)
			return true;
		count += entry.kind == CFI_FDE;
	}
	return false;
}

/* False where the file was cut short since. */
static bool read_section(const struct elf_image *image, const struct frame_section *found,
                         size_t *budget, struct cfi_section *section, bool *cut)
{
	size_t most = *budget / 2 < PART_MAX ? *budget / 2 : PART_MAX;

	if (!frame_section_read(image, found, most, section))
		return false;
	*cut |= found->bytes > most;
	*budget -= section->bytes;
	return true;
}

static int read_sections(const struct elf_image *image, const char *what, size_t *budget,
                         struct cfi_section sections[2], bool *cut, struct err *err)
{
	struct frame_section found;
	int count = 0;

	if (frame_section_find(image, &found)) {
		if (!read_section(image, &found, budget, &sections[0], cut))
			return err_set(err, EBADMSG,
			               "%s is damaged or cut short: its .eh_frame "
			               "lies outside of it",
			               what);
		count = 1;
	}
	/* What goes wrong with this one is no matter: it is of no use at run time. */
	if ((!count || has_few_fdes(&sections[0])) && frame_section_find_debug(image, &found) &&
	    read_section(image, &found, budget, &sections[count], cut))
		count++;
	return count;
}

int frame_rows_read(int fd, const char *what, size_t budget, struct frame_rows *rows,
                    struct err *err)
{
	struct cfi_section sections[2] = { 0 };
	struct elf_image image;
	struct frame_code code;
	Elf64_Ehdr header;
	bool cut = false;
	int rc;

	memset(rows, 0, sizeof(*rows));
	rc = elf_image_open(&image, fd, what, err);
	if (rc)
		return rc;
	find_code(&image, &code);
	code.outermost = start_context_find(&image);
	code.machine = elf_image_read(&image, 0, &header, sizeof(header))
	                       ? cfi_machine_of(header.e_machine)
	                       : NULL;
	if (code.machine)
		rc = read_sections(&image, what, &budget, sections, &cut, err);
	else
		rc = err_set(err, EBADMSG, "%s is cut short while it is read", what);
	elf_image_close(&image);
	if (rc >= 0) {
		frame_rows_compile(sections, (size_t)rc, &code, budget, rows);
		rows->counts.cut |= cut;
	}
	free((void *)sections[0].data);
	free((void *)sections[1].data);
	return rc < 0 ? rc : 0;
}

void frame_rows_free(struct frame_rows *rows)
{
	free(rows->rows);
	free(rows->rules);
	memset(rows, 0, sizeof(*rows));
}
