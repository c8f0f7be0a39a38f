// SPDX-License-Identifier: MIT
#include "probe/symbol.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>

static uint64_t address_of(Elf *elf, uint64_t offset)
{
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, i, &ph) && ph.p_type == PT_LOAD && offset >= ph.p_offset &&
		    offset - ph.p_offset < ph.p_filesz)
			return offset - ph.p_offset + ph.p_vaddr;
	}
	return 0;
}

static bool covers(const GElf_Sym *symbol, uint64_t address)
{
	return GELF_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       address >= symbol->st_value &&
	       address - symbol->st_value < (symbol->st_size ? symbol->st_size : 1);
}

static bool search_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t address,
                           char *name, size_t size)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

	for (size_t i = 0; data && i < count; i++) {
		GElf_Sym symbol;
		const char *text;

		if (!gelf_getsym(data, i, &symbol) || !covers(&symbol, address))
			continue;
		text = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (text)
			snprintf(name, size, "%s", text);
		return text != NULL;
	}
	return false;
}

static bool search_type(Elf *elf, unsigned type, uint64_t address, char *name, size_t size)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == type &&
		    search_section(elf, section, &header, address, name, size))
			return true;
	}
	return false;
}

void symbol_at(int fd, uint64_t offset, char *name, size_t size)
{
	uint64_t address;
	Elf *elf;

	name[0] = '\0';
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL); /* not mmap: the file may shrink under us */
	if (!elf)
		return;
	address = address_of(elf, offset);
	if (address && !search_type(elf, SHT_SYMTAB, address, name, size))
		search_type(elf, SHT_DYNSYM, address, name, size);
	elf_end(elf);
}
