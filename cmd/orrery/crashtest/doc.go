// Package crashtest kills a writing process at random moments and looks at what is left. It has only tests.
package crashtest
