// Package onemore counts what one more thing of a kind costs: a function of a language, a step, a route, an error code,
// a metric, a flag. Its test adds one of each by the recipes of testdata, as docs/contributing.md describes them, and
// runs the tests that show that the new thing works and that nothing else had to change. It has no code of its own.
package onemore
