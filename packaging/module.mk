# SPDX-License-Identifier: MIT
# make install, make dist

DIST_NAME := cuscope-$(VERSION)-$(ARCH)
DOCUMENTS := $(wildcard README.md LICENSE)

# -lzstd: for elfutils 0.189 and later. A static glibc is sure to find only the users of /etc/passwd (--user NAME).
# libdw.a wants what it unpacks sections with. Where that is not there as static libraries, the static program has no lines of
# native code, and `doctor` says so.
STATIC_LIBDW = $(if $(LIBDW),$(shell echo 'int main(void) { return !dwfl_version(0); }' | $(CC) -static -include elfutils/libdwfl.h \
                 -x c - -o /dev/null -ldw -lelf -llzma -lbz2 -lz -lzstd 2>/dev/null && echo -ldw -lelf -llzma -lbz2))
STATIC_LIBS = $(STATIC_LIBDW) -lbpf -lelf $(LIBZYDIS_A) -lsqlite3 -lncursesw -ltinfo -lz -lzstd -liberty -lstdc++ -lm -ldl -pthread
ifeq ($(ARCH),x86_64)
LIBZYDIS_A ?= $(B)/static/libZydis.a
endif

# The library for targets is inside the program too, but commands load it by a path that should outlive cuscope.
install: $(B)/cuscope $(B)/agent/embedded.so
	install -D -m 755 $(B)/cuscope $(DESTDIR)$(PREFIX)/bin/cuscope
	install -D -m 644 $(B)/agent/embedded.so $(DESTDIR)$(PREFIX)/lib/cuscope/$(notdir $(AGENT_SO))
	install -d $(DESTDIR)$(PREFIX)/share/doc/cuscope
	install -m 644 $(DOCUMENTS) $(wildcard docs/*.md) $(DESTDIR)$(PREFIX)/share/doc/cuscope

dist: dist/$(DIST_NAME).tar.gz

dist/$(DIST_NAME).tar.gz: dist/cuscope $(B)/agent/embedded.so $(DOCUMENTS) $(wildcard docs/*.md)
	rm -rf $(B)/dist
	install -D -m 755 dist/cuscope $(B)/dist/$(DIST_NAME)/cuscope
	install -m 644 $(B)/agent/embedded.so $(B)/dist/$(DIST_NAME)/$(notdir $(AGENT_SO))
	install -m 644 $(DOCUMENTS) $(B)/dist/$(DIST_NAME)
	install -d $(B)/dist/$(DIST_NAME)/docs $(B)/dist/$(DIST_NAME)/licenses
	for page in $(wildcard docs/*.md); do install -m 644 $$page $(B)/dist/$(DIST_NAME)/docs || exit 1; done
	packaging/licenses $(B)/dist/$(DIST_NAME)/licenses
	tar -c -z -f $@ -C $(B)/dist --sort=name --owner=0 --group=0 --numeric-owner $(DIST_NAME)
	@ls -l dist/cuscope $@

dist/cuscope: $(CLI_OBJ) $(B)/libcuscope.a $(LIBZYDIS_A) $(B)/static/without_libdw.o
	@mkdir -p dist
	$(CC) $(CFLAGS) -static-pie $(HARDEN_LDFLAGS) $(LDFLAGS) -Wl,--gc-sections -o $@ $(CLI_OBJ) \
		$(if $(STATIC_LIBDW),,$(B)/static/without_libdw.o) $(B)/libcuscope.a $(STATIC_LIBS)
	strip $@

# In place of the archive's own.
$(B)/static/without_libdw.o: src/stack/lines/debug_info.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HARDEN) -fPIE $(CFLAGS) -UCUSCOPE_LIBDW -c -o $@ $<

$(B)/static/libZydis.a:
	@mkdir -p $(@D)
	CC='$(CC)' CFLAGS='$(HARDEN) -fPIE' packaging/zydis-static $@

.PHONY: install dist
