/* SPDX-License-Identifier: MIT */
/*
 * The entries of .eh_frame and .debug_frame. A CIE says what many functions have in common. An FDE
 * is of one function, names its CIE, and carries the program that says where registers are saved.
 *
 * The bytes are those of an untrusted file: nothing that they say leads out of the section.
 */
#ifndef CUSCOPE_UNWIND_CFI_ENTRY_H
#define CUSCOPE_UNWIND_CFI_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi_bytes.h"

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

#endif
