// Package imports holds the rule who may import whom (the table of docs/architecture.md) as a test. It has no code of
// its own.
package imports
