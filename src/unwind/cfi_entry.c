// SPDX-License-Identifier: MIT
/*
 * The entries of .eh_frame and .debug_frame. A CIE says what many functions have in common. An FDE
 * is of one function, names its CIE, and carries the program that says where registers are saved.
 *
 * The bytes are those of an untrusted file: nothing that they say leads out of the section.
 */
#include "unwind/cfi_program.h"

enum {
	/* DW_EH_PE_*: the low four bits say how a pointer is written, three more from where it
	 * counts. */
	PE_FORM = 0x0f,
	PE_ABSOLUTE = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_BASE = 0x70,
	PE_PCREL = 0x10,
	PE_ALIGNED = 0x50,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

#define LENGTH_64   0xffffffffu /* the length follows, of 64 bits */
#define LETTERS_MAX 16          /* of an augmentation; "zPLR" is what there is */

static struct cfi_bytes bytes_from(const struct cfi_section *section, size_t at)
{
	return (struct cfi_bytes){ section->data + at, section->data + section->bytes, false };
}

static size_t offset_in(const struct cfi_section *section, const struct cfi_bytes *bytes)
{
	return (size_t)(bytes->at - section->data);
}

/* What tells a CIE from an FDE stands where an FDE has the way to its CIE. */
static void read_id(const struct cfi_section *section, struct cfi_entry *entry, size_t id_bytes)
{
	size_t at = offset_in(section, &entry->body);
	uint64_t id = cfi_unsigned(&entry->body, id_bytes);
	uint64_t cie_id = !section->debug ? 0 : id_bytes == 8 ? UINT64_MAX : UINT32_MAX;

	if (entry->body.bad)
		return;
	if (id == cie_id) {
		entry->kind = CFI_CIE;
		return;
	}
	if (!section->debug) /* so far before this place, else from the section's begin */
		id = id <= at ? at - id : UINT64_MAX;
	if (id >= section->bytes)
		return;
	entry->kind = CFI_FDE;
	entry->cie = (size_t)id;
}

struct cfi_entry cfi_entry_at(const struct cfi_section *section, size_t at)
{
	struct cfi_entry entry = { .kind = CFI_END, .next = section->bytes };
	struct cfi_bytes bytes;
	size_t id_bytes = 4;
	uint64_t length;

	if (at >= section->bytes || section->bytes - at < 4)
		return entry;
	bytes = bytes_from(section, at);
	length = cfi_unsigned(&bytes, 4);
	if (!length && section->ends_at_zero)
		return entry;
	if (!length) {
		entry.kind = CFI_NOTHING;
		entry.next = at + 4;
		return entry;
	}
	if (length == LENGTH_64) {
		length = cfi_unsigned(&bytes, 8);
		id_bytes = section->debug ? 8 : 4;
	}
	entry.kind = CFI_BAD;
	if (length > cfi_left(&bytes))
		return entry;
	entry.body = cfi_part(&bytes, length);
	entry.next = offset_in(section, &bytes);
	read_id(section, &entry, id_bytes);
	return entry;
}

static uint64_t read_form(struct cfi_bytes *bytes, uint8_t form)
{
	switch (form) {
	case PE_ABSOLUTE:
	case PE_UDATA8:
	case PE_SDATA8:
		return cfi_unsigned(bytes, 8);
	case PE_UDATA4:
		return cfi_unsigned(bytes, 4);
	case PE_SDATA4:
		return (uint64_t)cfi_signed(bytes, 4);
	case PE_UDATA2:
		return cfi_unsigned(bytes, 2);
	case PE_SDATA2:
		return (uint64_t)cfi_signed(bytes, 2);
	case PE_ULEB128:
		return cfi_uleb128(bytes);
	case PE_SLEB128:
		return (uint64_t)cfi_sleb128(bytes);
	default:
		cfi_fail(bytes);
		return 0;
	}
}

uint64_t cfi_pointer(const struct cfi_section *section, struct cfi_bytes *bytes, uint8_t encoding)
{
	uint64_t place = section->address + offset_in(section, bytes);

	if (encoding == (PE_PCREL | PE_SDATA4)) /* as almost all files have it */
		return place + (uint64_t)cfi_signed(bytes, 4);
	if (encoding == PE_ALIGNED) {
		cfi_skip(bytes, -place & 7);
		return cfi_unsigned(bytes, 8);
	}
	if ((encoding & (PE_BASE | PE_INDIRECT)) == PE_PCREL)
		return place + read_form(bytes, encoding & PE_FORM);
	if (!(encoding & (PE_BASE | PE_INDIRECT)))
		return read_form(bytes, encoding & PE_FORM);
	cfi_fail(bytes);
	return 0;
}

/* Of the personality routine it only matters how long the pointer is. */
static void skip_personality(const struct cfi_section *section, struct cfi_bytes *bytes)
{
	uint8_t encoding = cfi_u8(bytes);

	if (encoding == PE_ALIGNED)
		cfi_pointer(section, bytes, encoding);
	else if (encoding != PE_OMIT)
		read_form(bytes, encoding & PE_FORM);
}

/* "zPLR" and the like, a letter for each thing that follows. */
static bool read_augmentation(const struct cfi_section *section, const char *letters,
                              struct cfi_bytes *bytes, struct cfi_cie *cie)
{
	struct cfi_bytes data;

	if (!*letters)
		return true;
	if (*letters++ != 'z')
		return false;
	cie->augmented = true;
	data = cfi_part(bytes, cfi_uleb128(bytes));
	for (; *letters; letters++) {
		switch (*letters) {
		case 'L': /* how FDEs write the place of their exception tables */
			cfi_u8(&data);
			break;
		case 'P':
			skip_personality(section, &data);
			break;
		case 'R':
			cie->pc_encoding = cfi_u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: return addresses are signed with the second key */
		case 'G': /* AArch64: the frame's memory is tagged */
			break;
		default:
			return false;
		}
	}
	return !data.bad;
}

bool cfi_cie_read(const struct cfi_section *section, size_t at, struct cfi_cie *cie)
{
	struct cfi_entry entry = cfi_entry_at(section, at);
	struct cfi_bytes *bytes = &entry.body;
	const char *letters;
	uint8_t version;
	size_t length;

	memset(cie, 0, sizeof(*cie));
	if (entry.kind != CFI_CIE)
		return false;
	version = cfi_u8(bytes);
	if (version != 1 && version != 3 && version != 4)
		return false;
	letters = (const char *)bytes->at;
	length = strnlen(letters, cfi_left(bytes) < LETTERS_MAX ? cfi_left(bytes) : LETTERS_MAX);
	if (length == LETTERS_MAX)
		return false;
	cfi_skip(bytes, length + 1);
	if (bytes->bad)
		return false;
	/* The size of an address, and of a segment's number. */
	if (version == 4 && (cfi_u8(bytes) != 8 || cfi_u8(bytes) != 0))
		return false;
	cie->code_factor = cfi_uleb128(bytes);
	cie->data_factor = cfi_sleb128(bytes);
	cie->ra = version == 1 ? cfi_u8(bytes) : cfi_uleb128(bytes);
	if (!read_augmentation(section, letters, bytes, cie))
		return false;
	cie->program = *bytes;
	return !bytes->bad;
}

bool cfi_fde_read(const struct cfi_section *section, const struct cfi_entry *entry,
                  const struct cfi_cie *cie, struct cfi_fde *fde)
{
	struct cfi_bytes bytes = entry->body;
	uint64_t size;

	fde->start = cfi_pointer(section, &bytes, cie->pc_encoding);
	size = read_form(&bytes, cie->pc_encoding & PE_FORM);
	fde->end = fde->start + size;
	if (cie->augmented)
		cfi_skip(&bytes, cfi_uleb128(&bytes));
	fde->program = bytes;
	return !bytes.bad && fde->end >= fde->start;
}
