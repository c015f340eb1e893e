// Package style holds rules for the text of the repository as tests: how long lines of Go are, that no file names a
// document that isn't here, and that tables of Markdown are whole. It has no code of its own.
package style
