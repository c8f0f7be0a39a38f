# SPDX-License-Identifier: MIT
# make inject-programs     $(B)/inject: what tests/integration/test_inject.py attaches with, to, and what it injects

INJ   := tests/inject
INJ_B := $(B)/inject
INJ_ALL := $(INJ_B)/attach $(INJ_B)/library.so $(INJ_B)/target $(INJ_B)/target-static $(INJ_B)/slow_malloc.so

inject-programs: $(INJ_ALL)
programs: inject-programs

$(INJ_B)/attach: $(INJ_B)/attach.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(INJ_B)/%.o: $(INJ)/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(INJ_B)/library.so: $(INJ)/library.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -Isrc $(SANITIZE),$(CFLAGS)) -fPIC -shared -o $@ $< -lm

$(INJ_B)/slow_malloc.so: $(INJ)/slow_malloc.c $(INJ)/slow_malloc.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -Isrc $(SANITIZE),$(CFLAGS)) -fPIC -shared -o $@ $<

$(INJ_B)/registers.o: $(INJ)/registers.S
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

TARGET_OBJ := $(INJ_B)/target.o $(INJ_B)/target_waits.o $(INJ_B)/registers.o

$(INJ_B)/target: $(TARGET_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(INJ_B)/target-static: $(TARGET_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ 2>/dev/null # dlopen in a static program: a warning

.PHONY: inject-programs
