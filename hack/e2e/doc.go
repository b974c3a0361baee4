// Package e2e holds the end-to-end tests: the real binary, the real engine,
// HTTP and WebSocket. They check every endpoint and every state transition, kill
// the daemon during every kind of request, and interfere from outside. They log
// the figures that they measure (go test -v).
//
//	BERTH_LONG=1   run the long forms: more rounds and more requests
//	BERTH_E2E_SEED=n   repeat the random numbers of an earlier run
package e2e
