// SPDX-License-Identifier: MIT
/*
 * The rows of real files against libdw, which perf walks stacks by: against_libdw FILE...
 *
 * libdw tells for one address what holds there, and for how long. So each file is gone through from
 * the first address to the last in such stretches, and of each the rule must be the same. A file is
 * a test. "[vdso]" is what the kernel maps into every process.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "unwind/frame_rows.h"
#include "unwind/frame_find.h"
#include "unwind/row_tree.h"

#define BUDGET    (256u << 20)
#define GAP_MAX   15
#define SHOWN_MAX 8
#define SOMEWHERE 2000 /* addresses at random, a file */

struct file {
	const char *name;
	Elf *elf;
	Dwarf_CFI *cfi;
	const struct cfi_machine *machine;
	struct frame_rows rows;
	struct wire_node *nodes;
	uint64_t outermost; /* where stacks of makecontext begin, which its table does not say */
	uint64_t agree, differ, unsupported, padding, nowhere;
};

/* ---- what libdw says, as a rule -------------------------------------------------------------- */

static bool is_register(const Dwarf_Op *op, uint64_t *number, int64_t *offset)
{
	if (op->atom == DW_OP_bregx) {
		*number = op->number;
		*offset = (int64_t)op->number2;
		return true;
	}
	*number = op->atom - DW_OP_breg0;
	*offset = (int64_t)op->number;
	return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
}

static bool is_plt(const Dwarf_Op *ops, size_t n)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
		                         DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus };

	if (n != sizeof(atoms))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	}
	return true;
}

static bool cfa_of(const struct file *file, const Dwarf_Op *ops, size_t n, struct wire_rule *rule)
{
	uint64_t number;
	int64_t offset;
	bool deref = n > 1 && ops[1].atom == DW_OP_deref;

	if (is_plt(ops, n)) {
		rule->cfa_kind = CFA_PLT;
		rule->cfa = ops[4].atom - DW_OP_lit0;
		return true;
	}
	if (!n || !is_register(&ops[0], &number, &offset) || (n > 1 && !deref) || n > 3 ||
	    (n == 3 && ops[2].atom != DW_OP_plus_uconst))
		return false;
	rule->cfa = (int32_t)offset;
	rule->add = n == 3 ? (int16_t)ops[2].number : 0;
	if (number == file->machine->sp)
		rule->cfa_kind = deref ? CFA_AT_SP : CFA_SP;
	else if (number == file->machine->fp)
		rule->cfa_kind = deref ? CFA_AT_FP : CFA_FP;
	else if (number == 10 && file->machine->sp == 7 && !deref)
		rule->cfa_kind = CFA_R10;
	else
		return false;
	return true;
}

enum saved { SAVED_SAME, SAVED_NOT, SAVED_CFA, SAVED_FP, SAVED_IS_CFA, SAVED_OTHER };

static enum saved saved_of(const struct file *file, Dwarf_Frame *frame, int number, int32_t *offset)
{
	Dwarf_Op memory[3], *ops;
	uint64_t base;
	int64_t from;
	size_t n;

	if (dwarf_frame_register(frame, number, memory, &ops, &n))
		return SAVED_OTHER;
	if (!n)
		return ops ? SAVED_NOT : SAVED_SAME;
	if (ops[n - 1].atom == DW_OP_stack_value)
		return n == 2 && ops[0].atom == DW_OP_call_frame_cfa ? SAVED_IS_CFA : SAVED_OTHER;
	if (ops[0].atom == DW_OP_call_frame_cfa &&
	    (n == 1 || (n == 2 && ops[1].atom == DW_OP_plus_uconst))) {
		*offset = n == 2 ? (int32_t)ops[1].number : 0;
		return SAVED_CFA;
	}
	if (n > 1 && ops[0].atom == DW_OP_call_frame_cfa) { /* what every expression begins with */
		ops++;
		n--;
	}
	if (n == 1 && is_register(&ops[0], &base, &from) && base == file->machine->fp) {
		*offset = (int32_t)from;
		return SAVED_FP;
	}
	return SAVED_OTHER;
}

static bool fill_rule(const struct file *file, Dwarf_Frame *frame, struct wire_rule *rule)
{
	bool is_x86 = file->machine->sp == 7;
	Dwarf_Op *ops;
	enum saved ra, fp, sp;
	int32_t offset = 0;
	size_t n;

	ra = saved_of(file, frame, file->machine->ra, &rule->ra);
	if (ra == SAVED_NOT) {
		rule->cfa_kind = CFA_STOP;
		return true;
	}
	if (dwarf_frame_cfa(frame, &ops, &n) || !cfa_of(file, ops, n, rule))
		return false;
	sp = saved_of(file, frame, file->machine->sp, &offset);
	if (sp != SAVED_IS_CFA && sp != SAVED_NOT)
		return false;
	rule->ra_kind = ra == SAVED_SAME ? RA_LR : RA_CFA;
	if ((ra != SAVED_CFA && (is_x86 || ra != SAVED_SAME)) || (is_x86 && rule->ra != -8))
		return false;
	fp = saved_of(file, frame, file->machine->fp, &rule->fp);
	rule->fp_kind = fp == SAVED_SAME  ? FP_SAME
	                : fp == SAVED_CFA ? FP_CFA
	                : fp == SAVED_FP  ? FP_AT_FP
	                                  : FP_GONE;
	return true;
}

/*
 * False where libdw knows nothing of the address. *end: until where it is so. A rule that programs
 * cannot follow is CFA_OTHER.
 */
static bool ask(const struct file *file, uint64_t address, struct wire_rule *rule, uint64_t *end)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr from;
	bool signal;

	memset(rule, 0, sizeof(*rule));
	if (dwarf_cfi_addrframe(file->cfi, address, &frame))
		return false;
	dwarf_frame_info(frame, &from, end, &signal);
	if (signal)
		rule->cfa_kind = CFA_SIGNAL;
	else if (!fill_rule(file, frame, rule))
		*rule = (struct wire_rule){ .cfa_kind = CFA_OTHER };
	free(frame);
	return true;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static const struct wire_rule *our_rule(const struct file *file, uint64_t address)
{
	return &file->rows.rules[row_tree_find(file->nodes, (uint32_t)(address - file->rows.base))];
}

static void show(const char *who, const struct wire_rule *rule)
{
	printf("    %s: cfa kind %d %+d add %d, fp kind %d %+d, ra kind %d %+d\n", who,
	       rule->cfa_kind, rule->cfa, rule->add, rule->fp_kind, rule->fp, rule->ra_kind,
	       rule->ra);
}

/* Between two functions the rule of the first may go on for some bytes. */
static bool is_padding(const struct file *file, uint64_t address)
{
	struct wire_rule rule;
	uint64_t end;

	for (uint64_t back = 1; back <= GAP_MAX; back++) {
		if (ask(file, address - back, &rule, &end))
			return true;
	}
	return false;
}

/* Where libdw's stretch at `address` ends; the next address where it has none. */
static uint64_t compare_at(struct file *file, uint64_t address)
{
	const struct wire_rule *ours = our_rule(file, address);
	struct wire_rule theirs;
	uint64_t end = address + 1;
	bool is_known = ask(file, address, &theirs, &end);

	if (file->outermost && address == file->outermost)
		theirs = frame_rule_plain(CFA_STOP);
	if (is_known && memcmp(ours, &theirs, sizeof(theirs)) == 0) {
		file->agree++;
		file->unsupported += ours->cfa_kind == CFA_OTHER;
	} else if (!is_known && ours->cfa_kind == CFA_NONE) {
		file->nowhere++;
	} else if (!is_known && is_padding(file, address)) {
		file->padding++;
	} else if (file->differ++ < SHOWN_MAX) {
		printf("  %s at %#lx\n", file->name, (unsigned long)address);
		show("ours ", ours);
		if (is_known)
			show("libdw", &theirs);
		else
			puts("    libdw knows nothing of it");
	}
	return end;
}

/* Every row, in as many stretches as libdw has for it. */
static void compare_rows(struct file *file)
{
	const struct frame_rows *rows = &file->rows;

	for (uint32_t i = 0; i < rows->n_rows; i++) {
		uint64_t at = rows->base + rows->rows[i].address, end;
		bool is_code = rows->rules[rows->rows[i].rule].cfa_kind != CFA_NONE;

		end = i + 1 < rows->n_rows ? rows->base + rows->rows[i + 1].address : at + 1;
		while (at < end) {
			uint64_t next = compare_at(file, at);

			/* One after the other in padding, not in long stretches without code. */
			at = next == at + 1 && !is_code ? end : next;
		}
	}
}

static void compare_somewhere(struct file *file)
{
	const struct frame_rows *rows = &file->rows;
	uint32_t last = rows->rows[rows->n_rows - 1].address;

	for (int i = 0; last && i < SOMEWHERE; i++)
		compare_at(file, rows->base + (uint64_t)(lrand48() % last));
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool find_section(const struct file *file, const char *name, struct cfi_section *section)
{
	Elf_Scn *found = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return false;
	while ((found = elf_nextscn(file->elf, found))) {
		gelf_getshdr(found, &header);
		if (strcmp(elf_strptr(file->elf, names, header.sh_name), name) != 0)
			continue;
		data = elf_rawdata(found, NULL);
		*section = (struct cfi_section){ .data = data->d_buf,
			                         .bytes = data->d_size,
			                         .address = header.sh_addr };
		return true;
	}
	return false;
}

/* For files of another machine, which frame_rows_read refuses. */
static int read_foreign(struct file *file)
{
	struct frame_code code = { .machine = file->machine, .base = 0, .high = UINT32_MAX };
	struct cfi_section section;

	if (!find_section(file, ".eh_frame", &section))
		return -ENOENT;
	frame_rows_compile(&section, 1, &code, BUDGET, &file->rows);
	return 0;
}

static int read_rows(struct file *file, int fd)
{
	struct elf_image image;
	GElf_Ehdr header;
	struct err err;
	int rc;

	gelf_getehdr(file->elf, &header);
	file->machine = cfi_machine_of(header.e_machine);
	if (!file->machine)
		return -ENOENT;
	if (elf_image_open(&image, fd, file->name, NULL) == 0) {
		file->outermost = start_context_find(&image);
		elf_image_close(&image);
	}
	rc = frame_rows_read(fd, file->name, BUDGET, &file->rows, &err);
	return rc == -EPROTONOSUPPORT ? read_foreign(file) : rc;
}

static int open_vdso(void)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	size_t bytes = 0;

	/* Its section headers are the last thing in it. */
	if (vdso)
		bytes = ((const Elf64_Ehdr *)vdso)->e_shoff +
		        ((const Elf64_Ehdr *)vdso)->e_shnum * sizeof(Elf64_Shdr);
	return write(fd, vdso, bytes) == (ssize_t)bytes ? fd : -1;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool compare(struct file *file, int fd)
{
	double begin = seconds_now(), read;
	int rc = read_rows(file, fd);

	if (rc) {
		printf("%s: not read: %s\n", file->name, strerror(-rc));
		return false;
	}
	read = seconds_now();
	file->nodes =
		calloc(row_tree_nodes(file->rows.rows, file->rows.n_rows), sizeof(*file->nodes));
	row_tree_fill(file->nodes, file->rows.rows, file->rows.n_rows, NULL);
	file->cfi = dwarf_getcfi_elf(file->elf);
	compare_rows(file);
	compare_somewhere(file);
	printf("%s: %u rows of %u functions, %u rules, in %.1f ms; %lu stretches agree, %lu "
	       "differ, %lu are unsupported, %lu padding, %lu no code; %u bad, %u outside\n",
	       file->name, file->rows.n_rows, file->rows.counts.fdes, file->rows.n_rules,
	       (read - begin) * 1e3, file->agree, file->differ, file->unsupported, file->padding,
	       file->nowhere, file->rows.counts.bad_fdes, file->rows.counts.outside);
	dwarf_cfi_end(file->cfi);
	return !file->differ && !file->rows.counts.cut;
}

static struct {
	uint64_t agree, differ, unsupported;
} total;

static bool test_file(const char *name)
{
	struct file file = { .name = name };
	int fd = strcmp(name, "[vdso]") == 0 ? open_vdso() : open(name, O_RDONLY | O_CLOEXEC);
	bool is_good;

	file.elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	if (!file.elf) {
		printf("%s: not opened\n", name);
		return false;
	}
	is_good = compare(&file, fd);
	total.agree += file.agree;
	total.differ += file.differ;
	total.unsupported += file.unsupported;
	frame_rows_free(&file.rows);
	free(file.nodes);
	elf_end(file.elf);
	close(fd);
	return is_good;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	elf_version(EV_CURRENT);
	srand48(1);
	for (int i = 1; i < argc; i++) {
		if (test_file(argv[i]))
			passed++;
		else
			failed++;
	}
	printf("%lu of %lu stretches agree; %lu of them have a shape that no rule describes\n",
	       total.agree, total.agree + total.differ, total.unsupported);
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
