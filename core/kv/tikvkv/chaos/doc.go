// Package chaos tests several processes of the core over a cluster of stores that fails. Each process is one of the
// operating system: the test binary runs itself again. Every few seconds a process or a store is killed or paused, or
// the Placement Driver is restarted.
//
// It has only tests. They need a program that controls a cluster, whose name ORRERY_TEST_CLUSTER has:
//
//	PROGRAM start DIR N              starts a cluster of N stores, and prints the host:port of each member of the
//	                                 Placement Driver last, with commas between them
//	PROGRAM kill DIR pd|1..N         kills the leader of the Placement Driver, or one store
//	PROGRAM restart DIR pd|1..N      starts it again after that
//	PROGRAM pause DIR pd|1..N        stops it for a while, as SIGSTOP does
//	PROGRAM resume DIR pd|1..N       lets it go on
//	PROGRAM stop DIR                 ends everything
//
// ORRERY_CHAOS_FAULTS has the faults, with commas between them: process killed, process paused, store killed (and
// started again), store lost (once in a run, for good), store paused, Placement Driver restarted. They happen in random
// order. Without it, no store fails. Each run has a cluster of its own.
//
// Users of other processes wait for three seconds at most after a process was killed or paused. This is checked. By
// default stores elect a leader after 10 to 20 s, and the Placement Driver's members after 3 to 6 s. Whoever needs it
// waits for that. ORRERY_CHAOS_WAIT=3s is the longest wait after the other faults, for a program whose stores and
// members elect fast. Without it these waits are only logged. docs/scaling.md says which settings its waits are of.
//
// Where a store has ended by itself there may be no majority. Then the run says so, and its waits are only logged. What
// the stores have printed is found in files DIR/*.out.
//
// ORRERY_CHAOS_RUNS is the number of runs, 1 by default, ORRERY_CHAOS_SECONDS how long each lasts, 20 by default, and
// ORRERY_CHAOS_STORES the number of stores, 3 by default.
package chaos
