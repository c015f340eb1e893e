// Package sql is the NoSQL API's query language: lexer, parser, binder, evaluator, index predicates, projection and the
// query plan that SDKs ask for.
//
// The way of a query:
//
//	text -> Parse -> *Query (syntax tree, immutable)
//	     -> Compile -> *Plan: closures over a frame; cached by text, parameters are bound per execution
//	     -> Plan.Execute: access.Pred to the core, rows back, exact filter, projection appended as JSON to the page
//
// Invariants:
//  1. A compiled program is shared by all executions of its text and is never written after compile; everything that
//     changes lives in a frame.
//  2. The predicate handed to the core is never stronger than the filter (sarg.go); the closure of WHERE decides.
//  3. No input reaches a recursion deeper than maxDepth, and AND, OR and || chains are flat lists.
package sql
