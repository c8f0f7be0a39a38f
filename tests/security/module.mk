# SPDX-License-Identifier: MIT
# make test-security    what hostile users of the machine try against cuscope as root (root)

SECURITY   := tests/security
SECURITY_B := $(B)/programs

$(SECURITY_B)/hostile-%: $(SECURITY)/%.c
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -fno-omit-frame-pointer -fno-optimize-sibling-calls -rdynamic -o $@ $< -ldl -pthread

$(SECURITY_B)/hostile-inside: $(SECURITY)/inside.c $(SECURITY)/inside_places.c $(SECURITY)/inside.h src/agent/wire.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(PROG_CFLAGS)) -Isrc -o $@ $(filter %.c,$^) -ldl

$(SECURITY_B)/hostile-copies: $(SECURITY)/copies.c $(B)/libcuscope.a
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -Isrc $(LDFLAGS) -o $@ $^ $(LIBS)

$(SECURITY_B)/slow_loader.so: $(SECURITY)/slow_loader.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(PROG_CFLAGS)) -fPIC -shared -o $@ $<

security-programs: $(SECURITY_B)/hostile-execs $(SECURITY_B)/hostile-fuse $(SECURITY_B)/hostile-hangs $(SECURITY_B)/hostile-floods $(SECURITY_B)/hostile-stacks $(SECURITY_B)/hostile-tables $(SECURITY_B)/hostile-inside $(SECURITY_B)/hostile-hooks $(SECURITY_B)/hostile-riddles $(SECURITY_B)/hostile-strangers $(SECURITY_B)/hostile-copies $(SECURITY_B)/hostile-mappings $(SECURITY_B)/hostile-groups $(SECURITY_B)/hostile-storms $(SECURITY_B)/hostile-pieces $(SECURITY_B)/slow_loader.so

test-security: $(B)/cuscope programs simcuda simnvml inject-programs security-programs
	@tests/integration/run --build $(B) --tests tests/security

.PHONY: test-security security-programs
