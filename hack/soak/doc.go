// Package soak holds one test: a real berth under every attack and every outage
// at once. A hostile tenant uses a token of its container with every scope that one may have,
// clients hold and drip connections, the panel is slow, and the engine is
// terminated and killed by turns. Meanwhile a good tenant starts and kills its
// container. The daemon must not exit, and its memory and its handles stay bounded.
//
//	BERTH_SOAK=30m           how long the attack lasts; 40s without it
//	BERTH_SOAK_ATTACKS=LIST  attacks such as "search,sockets", "-search" for all others,
//	                         or "none": then only the hostile container runs; see attacks_test.go
//
// The test bounds no time: with BERTH_SOAK it logs the start latencies of the good tenant, alone,
// alone with the engine's restarts, and under attack, for a person to compare (make soak). It
// also logs the parts of these starts, and those of a container without berth beside them.
package soak
