// Package aio syncs files without a thread that waits, by Linux' asynchronous I/O (io_submit).
//
// A goroutine in a system call keeps one of Go's processors until the runtime notices, which takes from 20 microseconds
// to 10 milliseconds. Where Go has only one, requests wait for as long, at each sync of the log.
package aio
