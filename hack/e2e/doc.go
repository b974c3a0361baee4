// Package e2e holds the end-to-end tests: the real binary, the real engine,
// HTTP and WebSocket. They walk the rows of the interface and every state
// transition, kill the daemon in the middle of every wish, and interfere from
// outside. Figures that they measure are logged (go test -v).
//
//	BERTH_E2E_LONG=1   the long forms: more rounds, more wishes
//	BERTH_E2E_SEED=n   the random offsets of an earlier run
package e2e
