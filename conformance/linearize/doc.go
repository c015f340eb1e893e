// Package linearize lets clients of three APIs create, read, replace by etag and delete the same few items, kills the
// server every moment, and asks a checker of histories (Porcupine) whether what the clients were told can be explained
// by items that change one step at a time. It has only tests.
//
// With --durability sync the history is one, over all kills: nothing that was answered may be taken back, an absence
// and a refusal neither. A request without an answer was done before its server's end, or never.
//
// With --durability relaxed each life of the server is a history of its own. It begins with what the server found, and
// that must be what the item was at some moment of the last seconds of the life before. Each item is looked at by
// itself: that the writes that survive are the first ones in the order of commits is for core's TestPowerLoss.
//
// ORRERY_LINEARIZE=<n> does n runs of 20 s of each, with a kill every 3 s; ORRERY_BINARY names the program, else it is
// built.
package linearize
