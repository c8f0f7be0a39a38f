# SPDX-License-Identifier: MIT
# make test-export         the golden traces in every format, read by other programs

test-export: $(B)/cuscope $(B)/tests/export/edges $(B)/tests/export/profiles
	@tests/export/run --build $(B)

$(B)/tests/export/edges $(B)/tests/export/profiles: %: %.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

.PHONY: test-export
