// Package deploy holds what an operator installs beside berth: alert rules and a
// dashboard for Grafana. Its tests run Debian's promtool and Prometheus.
package deploy
