// Package crashtest kills a writing process at random moments and checks what is left. It contains only tests.
package crashtest
