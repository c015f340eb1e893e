// Package stopwatch acts as a newcomer: from a clone with cold caches to the first answer. Its test runs only when it
// is asked for (make stopwatch), because it downloads all modules.
package stopwatch
