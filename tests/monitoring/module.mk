# SPDX-License-Identifier: MIT
# make test-monitoring     a real Prometheus scrapes `cuscope agent`; its tool checks metrics and rules; every query of the
#                          alerts and of the dashboard is answered (root)

PROMETHEUS := $(B)/prometheus/usr/bin/prometheus

# Debian's package, unpacked: installed it would start a server. Where it cannot be had the tests say so.
$(PROMETHEUS):
	@mkdir -p $(B)/prometheus
	@cd $(B)/prometheus && { apt-get -q download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | \
		tar -x ./usr/bin/prometheus ./usr/bin/promtool && rm prometheus_*.deb; } >fetch.log 2>&1 || true

test-monitoring: $(B)/cuscope programs planted-programs simcuda simnvml $(PROMETHEUS)
	@tests/monitoring/check.py $(B)

.PHONY: test-monitoring
