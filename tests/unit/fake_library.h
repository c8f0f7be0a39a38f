/* SPDX-License-Identifier: MIT */
/* In the place of the library that cuscope carries: an ELF file of nothing but a build id. */
#ifndef CUSCOPE_TESTS_FAKE_LIBRARY_H
#define CUSCOPE_TESTS_FAKE_LIBRARY_H

#include <elf.h>
#include <stddef.h>

struct fake_library {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	struct {
		Elf64_Nhdr head;
		char name[4];
		unsigned char id[20];
	} notes[2];
};

#define FAKE_LIBRARY_NOTES offsetof(struct fake_library, notes)

extern const struct fake_library embedded_agent;

const struct fake_library embedded_agent = {
	.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	            .e_type = ET_DYN,
	            .e_phoff = offsetof(struct fake_library, segments),
	            .e_phentsize = sizeof(Elf64_Phdr),
	            .e_phnum = 2 },
	.segments = { { .p_type = PT_LOAD, .p_filesz = sizeof(struct fake_library) },
	              { .p_type = PT_NOTE,
	                .p_offset = FAKE_LIBRARY_NOTES,
	                .p_filesz = sizeof(struct fake_library) - FAKE_LIBRARY_NOTES } },
	.notes = { { { 4, 20, NT_GNU_ABI_TAG }, "GNU", "not the id" },
	           { { 4, 20, NT_GNU_BUILD_ID }, "GNU", "an id of 20 bytes.." } },
};

_Static_assert(sizeof(struct fake_library) == 248, "where it ends");
__asm__(".globl embedded_agent_end\n.set embedded_agent_end, embedded_agent + 248\n");

#endif
