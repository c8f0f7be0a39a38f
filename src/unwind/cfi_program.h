/* SPDX-License-Identifier: MIT */
/*
 * Runs the programs of call frame information (DWARF 5, section 6.4.2). A program goes through a
 * function from its begin to its end, and tells for each stretch where the caller's registers are.
 * Of these only what stacks are walked by is kept: the CFA, the frame pointer, the return address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- cfi entry ------------------------------------------------------------------------------ */

/* ---- cfi bytes ----------------------------------------------------------------------------- */

/*
 * Bytes of call frame information, read one after the other and never past their end: what is not
 * there is 0, and the reader is marked bad.
 */

/* A number of 64 bits takes ten bytes. Compilers write no longer ones. */
#define CFI_LEB128_MAX 10

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t cfi_left(const struct cfi_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

static inline void cfi_fail(struct cfi_bytes *bytes)
{
	bytes->at = bytes->end;
	bytes->bad = true;
}

static inline void cfi_skip(struct cfi_bytes *bytes, uint64_t count)
{
	if (count > cfi_left(bytes))
		cfi_fail(bytes);
	else
		bytes->at += count;
}

/* Takes the next `count` bytes off as a reader of their own. */
static inline struct cfi_bytes cfi_part(struct cfi_bytes *bytes, uint64_t count)
{
	struct cfi_bytes part = { bytes->at, bytes->at, false };

	cfi_skip(bytes, count);
	part.end = bytes->bad ? part.at : bytes->at;
	part.bad = bytes->bad;
	return part;
}

/* A number of 1, 2, 4 or 8 bytes, of the byte order that both machines have. */
static inline uint64_t cfi_unsigned(struct cfi_bytes *bytes, size_t size)
{
	uint64_t value = 0;

	if (size > cfi_left(bytes)) {
		cfi_fail(bytes);
		return 0;
	}
	memcpy(&value, bytes->at, size);
	bytes->at += size;
	return value;
}

static inline uint8_t cfi_u8(struct cfi_bytes *bytes)
{
	if (bytes->at < bytes->end)
		return *bytes->at++;
	bytes->bad = true;
	return 0;
}

static inline int64_t cfi_signed(struct cfi_bytes *bytes, size_t size)
{
	unsigned int unused = 64 - 8 * (unsigned int)size;

	return (int64_t)(cfi_unsigned(bytes, size) << unused) >> unused;
}

/* The bits of a LEB128 number, and their count in *bits. */
static inline uint64_t cfi_leb128(struct cfi_bytes *bytes, unsigned int *bits)
{
	uint64_t value = 0;

	*bits = 0;
	for (unsigned int i = 0; i < CFI_LEB128_MAX; i++) {
		uint8_t byte = cfi_u8(bytes);

		value |= (uint64_t)(byte & 0x7f) << *bits;
		*bits += 7;
		if (!(byte & 0x80))
			return value;
	}
	cfi_fail(bytes);
	return 0;
}

static inline uint64_t cfi_uleb128(struct cfi_bytes *bytes)
{
	unsigned int bits;

	if (bytes->at < bytes->end && *bytes->at < 0x80) /* almost all are */
		return *bytes->at++;
	return cfi_leb128(bytes, &bits);
}

static inline int64_t cfi_sleb128(struct cfi_bytes *bytes)
{
	unsigned int bits;
	uint64_t value = cfi_leb128(bytes, &bits);

	if (bits < 64 && value >> (bits - 1) & 1)
		value |= ~(uint64_t)0 << bits;
	return (int64_t)value;
}

/* ---- cfi entry ----------------------------------------------------------------------------- */

struct cfi_section {
	const uint8_t *data;
	size_t bytes;
	uint64_t address;  /* as linked: pointers are relative to their own place */
	bool debug;        /* .debug_frame, which tells its CIEs in another way */
	bool ends_at_zero; /* its size is not known: an entry without length is the last one */
};

enum cfi_kind {
	CFI_END,     /* there are no more entries */
	CFI_NOTHING, /* no length: the end of what one of the objects brought */
	CFI_BAD,     /* an entry that makes no sense; the next one is where its length says */
	CFI_CIE,
	CFI_FDE,
};

struct cfi_entry {
	enum cfi_kind kind;
	size_t next;           /* offset of the entry after this one */
	size_t cie;            /* of an FDE: offset of its CIE, within the section */
	struct cfi_bytes body; /* what follows the header */
};

/* The entry at an offset of the section. */
struct cfi_entry cfi_entry_at(const struct cfi_section *section, size_t at);

struct cfi_cie {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra; /* the number that the return address has as a register */
	uint8_t pc_encoding;
	bool augmented; /* its FDEs have data for other readers, to be skipped */
	bool signal;    /* of the function to which a signal's handler returns */
	struct cfi_bytes program;
};

/* False where there is no CIE, or one that is not understood. */
bool cfi_cie_read(const struct cfi_section *section, size_t at, struct cfi_cie *cie);

struct cfi_fde {
	uint64_t start, end; /* as linked: [start, end) */
	struct cfi_bytes program;
};

/* False where it does not say what it is of. */
bool cfi_fde_read(const struct cfi_section *section, const struct cfi_entry *entry,
                  const struct cfi_cie *cie, struct cfi_fde *fde);

/*
 * An address in one of the encodings of pointers (DW_EH_PE_*): of any size, absolute or relative to
 * its own place. Others mark `bytes` bad: no linker writes them there.
 */
uint64_t cfi_pointer(const struct cfi_section *section, struct cfi_bytes *bytes, uint8_t encoding);

/* The numbers that DWARF gives to registers. */
struct cfi_machine {
	uint16_t elf; /* EM_* */
	uint8_t fp, sp, ra;
};

/* NULL for a machine (EM_*) whose stacks are not walked here. */
const struct cfi_machine *cfi_machine_of(uint16_t elf);

enum cfi_cfa {
	CFI_CFA_UNSAID,
	CFI_CFA_REGISTER, /* register + offset */
	CFI_CFA_AT,       /* *(register + offset) + add */
	CFI_CFA_PLT,      /* sp + 8, and 8 more where the address's last four bits are >= offset */
	CFI_CFA_OTHER,    /* an expression that is not understood */
};

enum cfi_saved {
	CFI_UNSAID,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA, /* *(CFA + offset) */
	CFI_AT_FP,  /* *(frame pointer + offset) */
	CFI_OTHER,
};

struct cfi_place {
	enum cfi_saved saved;
	int64_t offset;
};

struct cfi_state {
	enum cfi_cfa cfa;
	uint64_t cfa_register;
	int64_t cfa_offset, cfa_add;
	struct cfi_place fp, ra;
	struct cfi_place sp; /* CFI_UNSAID: it is the CFA, as almost everywhere */
};

/* A stretch of code, [from, to), and what holds there; false ends the run. */
typedef bool cfi_row(void *data, uint64_t from, uint64_t to, const struct cfi_state *state);

struct cfi_run {
	const struct cfi_machine *machine;
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cfi_bytes program;
	uint64_t at, end;                /* where the function begins and ends */
	const struct cfi_state *initial; /* what the CIE's program made; NULL while it runs */
	cfi_row *row;                    /* NULL: no rows are wanted */
	void *data;
	int64_t *work; /* each instruction takes 1; where nothing is left the run ends */
};

/*
 * Begins with `state` and leaves what holds at the end there. False where the program makes no
 * sense, or there was no work left: run->at is then where what it said last began, and nothing is
 * known from there on.
 */
bool cfi_run(struct cfi_run *run, struct cfi_state *state);
