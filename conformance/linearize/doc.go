// Package linearize tests linearizability under crashes. Clients of three APIs create, read, replace by etag and delete
// the same few items while the server is killed repeatedly. Then a checker (Porcupine) decides whether the replies can
// be explained by items that change in single atomic steps. It contains only tests.
//
// With --durability sync there is one history over all kills. Nothing that was answered may be lost, including an
// absence and a refusal. A request without a reply took effect before the end of its server process, or never.
//
// With --durability relaxed each life of the server (between two kills) has its own history. It begins with the items
// that the server found. Each item must have the state of some moment in the last seconds of the previous life. Each
// item is checked separately; core's TestPowerLoss checks that the surviving writes are the first ones in commit order.
//
// Example, with sync: worker 1 creates k (201). The server is killed. Worker 2 then reads k as absent. No order of
// these operations explains both replies, so the check fails.
//
// Transactions of the MongoDB API, snapshots and change streams are tested in the same way. There the model is one
// state of all documents, which each transaction changes in one step (vector). The driver goes on with the next life of
// the server: it repeats commits and retryable writes there, and opens its stream again behind the last event.
//
// ORRERY_LINEARIZE=<n> does n runs of 20 s each, or one run of n times 20 s, with a kill every 3 s. ORRERY_BINARY is
// the program; without it the program is built.
package linearize
