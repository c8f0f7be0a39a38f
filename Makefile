# SPDX-License-Identifier: MIT
# make            build/cuscope
# make dist       dist/cuscope-VERSION-ARCH.tar.gz: one static program, and all that is installed with it
# make deb        packages of Debian
# make test       every test, or the parts in TEST_PARTS; see tests/parts
# make fuzz       libFuzzer on every parser, FUZZ_SECONDS each
# make coverage   which lines and functions of src the tests reach
# make bench      costs, against peers in the same run
# make DESTDIR= PREFIX=/usr/local install; make uninstall

VERSION := 0.1.0
ARCH    := $(shell uname -m)
PREFIX  ?= /usr/local
B       ?= build
CC      := gcc
CLANG   ?= clang
BPF_ARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)

CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter \
            -Wno-missing-field-initializers \
            -Wpointer-arith -Wformat=2 -Wno-format-nonliteral
override CFLAGS += -std=gnu17 $(WARN) -Isrc -D_GNU_SOURCE -DCUSCOPE_VERSION='"$(VERSION)"' -pthread -MMD -MP $(SANITIZE)
# Of all that runs as root or inside of targets; tests/hardening reads it back. FORTIFY_SOURCE wants an optimizer, and hides
# from sanitizers what they look for.
ifeq ($(ARCH),aarch64)
HARDEN_BRANCHES := -mbranch-protection=standard
else
HARDEN_BRANCHES := -fcf-protection=full
endif
OPTIMIZED       := $(filter-out -O0,$(filter -O%,$(CFLAGS)))
HARDEN          := -fstack-protector-strong -fstack-clash-protection $(HARDEN_BRANCHES) \
                   $(if $(OPTIMIZED),$(if $(SANITIZE),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
HARDEN_LDFLAGS  := -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code
# libstdc++ for __cxa_demangle only
# Lines and inlined functions of native code, by elfutils' libdw where it is there.
LIBDW    := $(shell echo 'int main(void) { return !dwfl_version(0); }' | \
              $(CC) -include elfutils/libdwfl.h -x c - -o /dev/null -ldw 2>/dev/null && echo -ldw)
override CFLAGS += $(if $(LIBDW),-DCUSCOPE_LIBDW)
LIBS     := $(LIBDW) -lmicrohttpd -linih -lbpf -lelf -lZydis -lZycore -lsqlite3 -lncursesw -ltinfo -lzstd -lz -lstdc++ -lm -pthread

LAYERS   := base table cuda gpus nvidia hooks trace probe stack unwind divert agent identity capture analysis account output profile report page watch top node
LIB_SRC  := $(sort $(filter-out src/agent/lib/% src/gpus/nvml/%,$(foreach l,$(LAYERS),$(wildcard src/$(l)/*.c src/$(l)/*/*.c))))
CLI_SRC  := $(sort $(wildcard src/cli/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(B)/%.o)

all: $(B)/cuscope

include $(wildcard src/*/module.mk tests/*/module.mk bench/module.mk packaging/module.mk)

$(B)/cuscope: $(CLI_OBJ) $(B)/libcuscope.a
	$(CC) $(CFLAGS) -pie $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# CARRIED is what modules add that no compiler of C makes: programs and files inside the program.
$(B)/libcuscope.a: $(LIB_OBJ) $(CARRIED)
	@rm -f $@
	ar rcs $@ $^

# The Makefile too: with other flags or another version an object is another one.
$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HARDEN) -fPIE $(CFLAGS) -c -o $@ $<

# Every part is a target test-NAME with a closing line that tests/tally sums.
test: all
	+@MAKE='$(MAKE)' tests/tally $(B)/tests $(TEST_PARTS)

# What one runs before each commit: in two minutes, and without root.
check:
	+@MAKE='$(MAKE)' tests/tally $(B)/tests sanitize golden format

# Compiles without linking, see tests/arm64
objects: $(LIB_OBJ) $(CLI_OBJ)

clean:
	rm -rf build dist

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)

.PHONY: all clean test check objects
.DELETE_ON_ERROR:
