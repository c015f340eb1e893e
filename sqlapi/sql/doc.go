// Package sql compiles and runs queries of the NoSQL API. The packages below it do the work that needs no execution:
// text and tree (syntax), functions and operators (funcs), paths and groups (shape), computed properties (expand),
// predicates for indexes (sarg), plans for clients (gateway).
//
// How a query is processed:
//
//	text -> syntax.Parse -> *syntax.Query (immutable)
//	     -> Compile -> *Plan: closures over a frame; cached by text, parameters are bound per execution
//	     -> Plan.Execute: access.Pred to the core, rows back, exact filter, projection appended as JSON to the page
//
// Invariants:
//  1. A compiled program is shared by all executions of its text and is never written after compile; everything that
//     changes lives in a frame.
//  2. The predicate handed to the core is never stronger than the filter (package sarg); the closure of WHERE decides.
//  3. No input reaches a recursion deeper than the parser allows, and AND, OR and || chains are flat lists.
package sql
